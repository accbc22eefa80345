//! Custom agents in the memory of one process.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::port::{AgentName, CustomAgent, CustomAgentError, CustomAgents};

/// Stores custom agents in memory.
#[derive(Debug, Default)]
pub struct InMemoryCustomAgents {
    agents: Mutex<BTreeMap<(String, AgentName), CustomAgent>>,
    souls: Mutex<HashMap<String, String>>,
    profiles: Mutex<HashMap<String, String>>,
    changes: AtomicU64,
}

impl InMemoryCustomAgents {
    fn count_change(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }
}

#[async_trait]
impl CustomAgents for InMemoryCustomAgents {
    fn version(&self, _user: &str) -> Option<u64> {
        Some(self.changes.load(Ordering::Acquire))
    }

    async fn get(
        &self,
        user: &str,
        name: &AgentName,
    ) -> Result<Option<CustomAgent>, CustomAgentError> {
        Ok(self
            .agents
            .lock()
            .get(&(user.to_owned(), name.clone()))
            .cloned())
    }

    async fn list(&self, user: &str) -> Result<Vec<(AgentName, CustomAgent)>, CustomAgentError> {
        let agents = self.agents.lock();
        let own = agents.iter().filter(|((of, _), _)| of == user);
        Ok(own
            .map(|((_, name), agent)| (name.clone(), agent.clone()))
            .collect())
    }

    async fn swap(
        &self,
        user: &str,
        name: &AgentName,
        current: Option<&CustomAgent>,
        new: Option<&CustomAgent>,
    ) -> Result<bool, CustomAgentError> {
        let mut agents = self.agents.lock();
        let key = (user.to_owned(), name.clone());
        if agents.get(&key) != current {
            return Ok(false);
        }
        match new {
            Some(new) => agents.insert(key, new.clone()),
            None => agents.remove(&key),
        };
        self.count_change();
        Ok(true)
    }

    async fn default_soul(&self, user: &str) -> Result<String, CustomAgentError> {
        Ok(self.souls.lock().get(user).cloned().unwrap_or_default())
    }

    async fn save_default_soul(&self, user: &str, soul: &str) -> Result<(), CustomAgentError> {
        self.souls.lock().insert(user.to_owned(), soul.to_owned());
        self.count_change();
        Ok(())
    }

    async fn profile(&self, user: &str) -> Result<String, CustomAgentError> {
        Ok(self.profiles.lock().get(user).cloned().unwrap_or_default())
    }

    async fn save_profile(&self, user: &str, profile: &str) -> Result<(), CustomAgentError> {
        self.profiles
            .lock()
            .insert(user.to_owned(), profile.to_owned());
        self.count_change();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testkit::custom_agents;

    #[tokio::test]
    async fn store_fulfils_the_contract() {
        custom_agents::saved_agent_is_read_back_unchanged(&InMemoryCustomAgents::default()).await;
        custom_agents::agents_of_other_users_are_hidden(&InMemoryCustomAgents::default()).await;
        custom_agents::agents_are_listed_by_name(&InMemoryCustomAgents::default()).await;
        custom_agents::concurrent_changes_are_not_lost(Arc::new(InMemoryCustomAgents::default()))
            .await;
        custom_agents::each_change_alters_the_version(&InMemoryCustomAgents::default()).await;
    }
}
