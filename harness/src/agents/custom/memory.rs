//! Users' agents for as long as the process lives.

use std::collections::HashMap;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::port::{AgentName, CustomAgent, CustomAgentError, CustomAgents};

/// Keeps agents in memory.
#[derive(Debug, Default)]
pub struct MemoryCustomAgents {
    agents: Mutex<HashMap<(String, AgentName), CustomAgent>>,
    souls: Mutex<HashMap<String, String>>,
}

#[async_trait]
impl CustomAgents for MemoryCustomAgents {
    async fn get(&self, user: &str, name: &AgentName) -> Result<Option<CustomAgent>, CustomAgentError> {
        Ok(self.agents.lock().get(&(user.to_owned(), name.clone())).cloned())
    }

    async fn save(&self, user: &str, name: &AgentName, agent: &CustomAgent) -> Result<(), CustomAgentError> {
        self.agents.lock().insert((user.to_owned(), name.clone()), agent.clone());
        Ok(())
    }

    async fn default_soul(&self, user: &str) -> Result<String, CustomAgentError> {
        Ok(self.souls.lock().get(user).cloned().unwrap_or_default())
    }

    async fn save_default_soul(&self, user: &str, soul: &str) -> Result<(), CustomAgentError> {
        self.souls.lock().insert(user.to_owned(), soul.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::custom_agents;

    #[tokio::test]
    async fn all_promises_are_kept() {
        custom_agents::what_is_saved_is_read_as_it_was(&MemoryCustomAgents::default()).await;
        custom_agents::nobody_sees_anothers(&MemoryCustomAgents::default()).await;
    }
}
