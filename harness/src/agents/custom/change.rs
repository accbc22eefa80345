//! Changes agents so that nobody's change is lost to another's.

use super::port::{
    AgentName, CustomAgent, CustomAgentError, CustomAgents, MAX_SOUL_CHARS, check_length,
};

/// How often a change is made anew because somebody else was faster.
const MOST_TRIES: usize = 64;
/// The most agents one user can have.
const MOST_AGENTS: usize = 200;

/// Makes of the user's agent what `decide` says: it gets the agent there is, also one that everybody has, and gives the one that the
/// user shall have. It is asked again when somebody else was faster.
pub async fn change<E: From<CustomAgentError>>(
    agents: &dyn CustomAgents,
    user: &str,
    name: &AgentName,
    decide: impl Fn(Option<CustomAgent>) -> Result<Option<CustomAgent>, E>,
) -> Result<Option<CustomAgent>, E> {
    for _ in 0..MOST_TRIES {
        let known = agents.get(user, name).await?;
        let held = known.clone().filter(|agent| !agent.shared);
        let new = decide(known)?;
        if new == held {
            return Ok(new);
        }
        if let Some(new) = &new {
            new.check_size()?;
            if held.is_none() && own(agents, user).await? >= MOST_AGENTS {
                return Err(CustomAgentError::TooMany(MOST_AGENTS).into());
            }
        }
        if agents.swap(user, name, held.as_ref(), new.as_ref()).await? {
            return Ok(new);
        }
    }
    Err(CustomAgentError::Contended(name.to_string()).into())
}

/// Says who the agent without a name is to this user.
pub async fn change_default_soul(
    agents: &dyn CustomAgents,
    user: &str,
    soul: &str,
) -> Result<(), CustomAgentError> {
    check_length("soul", soul, MAX_SOUL_CHARS)?;
    agents.save_default_soul(user, soul).await
}

/// Keeps what the user says of themselves.
pub async fn change_profile(
    agents: &dyn CustomAgents,
    user: &str,
    profile: &str,
) -> Result<(), CustomAgentError> {
    check_length("content", profile, MAX_SOUL_CHARS)?;
    agents.save_profile(user, profile).await
}

async fn own(agents: &dyn CustomAgents, user: &str) -> Result<usize, CustomAgentError> {
    Ok(agents
        .list(user)
        .await?
        .iter()
        .filter(|(_, agent)| !agent.shared)
        .count())
}
