//! Changes of custom agents without lost updates.

use super::port::{
    AgentName, CustomAgent, CustomAgentError, CustomAgents, MAX_SOUL_CHARS, check_length,
};

/// Maximum number of attempts if concurrent changes cause conflicts.
const MAX_ATTEMPTS: usize = 64;
/// Maximum number of custom agents of one user.
const MAX_AGENTS_PER_USER: usize = 200;

/// Applies `decide` to the user's agent and stores the result. `decide` receives the current agent,
/// which may be a shared one, and returns the new one (`None` deletes the agent). After a
/// concurrent change, `decide` is called again.
pub async fn change<E: From<CustomAgentError>>(
    agents: &dyn CustomAgents,
    user: &str,
    name: &AgentName,
    decide: impl Fn(Option<CustomAgent>) -> Result<Option<CustomAgent>, E>,
) -> Result<Option<CustomAgent>, E> {
    for _ in 0..MAX_ATTEMPTS {
        let visible = agents.get(user, name).await?;
        let current = visible.clone().filter(|agent| !agent.shared);
        let new = decide(visible)?;
        if new == current {
            return Ok(new);
        }
        if let Some(new) = &new {
            new.check_size()?;
            if current.is_none() && count_own_agents(agents, user).await? >= MAX_AGENTS_PER_USER {
                return Err(CustomAgentError::TooMany(MAX_AGENTS_PER_USER).into());
            }
        }
        if agents
            .swap(user, name, current.as_ref(), new.as_ref())
            .await?
        {
            return Ok(new);
        }
    }
    Err(CustomAgentError::Contended(name.to_string()).into())
}

/// Stores the soul of the unnamed agent for this user.
pub async fn change_default_soul(
    agents: &dyn CustomAgents,
    user: &str,
    soul: &str,
) -> Result<(), CustomAgentError> {
    check_length("soul", soul, MAX_SOUL_CHARS)?;
    agents.save_default_soul(user, soul).await
}

/// Stores the user's profile.
pub async fn change_profile(
    agents: &dyn CustomAgents,
    user: &str,
    profile: &str,
) -> Result<(), CustomAgentError> {
    check_length("content", profile, MAX_SOUL_CHARS)?;
    agents.save_profile(user, profile).await
}

async fn count_own_agents(
    agents: &dyn CustomAgents,
    user: &str,
) -> Result<usize, CustomAgentError> {
    Ok(agents
        .list(user)
        .await?
        .iter()
        .filter(|(_, agent)| !agent.shared)
        .count())
}
