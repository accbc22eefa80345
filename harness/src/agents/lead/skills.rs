//! Selects the skills of a lead agent.

use super::options::LeadOptions;
use super::persona::Persona;
use super::spec::LeadAgentSpec;
use crate::agents::agent_skills::AgentSkills;

/// Skill for creating agents.
const BOOTSTRAP: &str = "bootstrap";

/// Loads the skills of one agent for the current actor. The flag is `false` if they cannot be read;
/// the agent then runs without skills.
pub(super) async fn skills_of(
    spec: &LeadAgentSpec,
    options: &LeadOptions,
    persona: &Persona,
) -> (AgentSkills, bool) {
    let Some(skills) = &spec.skills else {
        return (AgentSkills::default(), true);
    };
    let choice = match &persona.agent.skills {
        _ if options.bootstrap => spec.skill_choice.among(Some(&[BOOTSTRAP.to_owned()])),
        names => spec.skill_choice.among(names.as_deref()),
    };
    match AgentSkills::load(skills, choice.clone()).await {
        Ok(skills) => (skills, true),
        Err(error) => {
            tracing::error!(%error, "cannot read skills, the agent runs without them");
            (AgentSkills::unreadable(choice), false)
        }
    }
}

#[cfg(test)]
#[path = "skills_tests.rs"]
mod tests;
