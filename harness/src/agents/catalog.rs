//! Finds agents by name. What belongs to one configuration is a value: a changed configuration gets a new one.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::ids::MAX_ID_LEN;
use crate::runtime::agent::{Agent, AgentResolver, AssistantInfo, UnknownAssistant};

/// Where the agents of one assistant come from.
#[async_trait]
pub trait AgentSource: Send + Sync + fmt::Debug + 'static {
    /// One line about the assistant.
    fn description(&self) -> Option<&str> {
        None
    }

    /// The agent for a run of the bound actor with these options, assembled before or now.
    async fn agent(&self, options: &Map<String, Value>)
    -> Result<Arc<dyn Agent>, UnknownAssistant>;

    /// Lets go of what was assembled; runs under way keep theirs.
    fn forget(&self) {}
}

/// The same agent for every run, whatever its options.
#[derive(Debug)]
struct Fixed(Arc<dyn Agent>);

#[async_trait]
impl AgentSource for Fixed {
    async fn agent(
        &self,
        _options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        Ok(self.0.clone())
    }
}

/// A fixed set of assistants.
#[derive(Debug, Default)]
pub struct StaticResolver {
    sources: IndexMap<String, Box<dyn AgentSource>>,
}

impl StaticResolver {
    /// No assistants.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an assistant; one of the same name is replaced.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, source: impl AgentSource) -> Self {
        self.sources.insert(name.into(), Box::new(source));
        self
    }

    /// Adds an assistant that is one agent.
    #[must_use]
    pub fn with_agent(self, name: impl Into<String>, agent: Arc<dyn Agent>) -> Self {
        self.with(name, Fixed(agent))
    }
}

#[async_trait]
impl AgentResolver for StaticResolver {
    async fn resolve(
        &self,
        assistant: &str,
        options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        match self.sources.get(assistant) {
            Some(source) => source.agent(options).await,
            None if !is_name(assistant) => Err(UnknownAssistant::InvalidName(
                assistant.chars().take(80).collect(),
            )),
            None => Err(UnknownAssistant::NotFound(assistant.to_owned())),
        }
    }

    fn forget(&self) {
        self.sources.values().for_each(|source| source.forget());
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        let description = |source: &dyn AgentSource| source.description().map(str::to_owned);
        self.sources
            .iter()
            .map(|(name, source)| AssistantInfo {
                name: name.clone(),
                description: description(&**source),
            })
            .collect()
    }
}

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !text.is_empty() && text.len() <= MAX_ID_LEN && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::AgentBuilder;
    use crate::models::ScriptedModel;

    #[tokio::test]
    async fn assistants_are_found_by_name_and_others_are_refused_with_a_reason() {
        let agent = AgentBuilder::new(Arc::new(ScriptedModel::default())).build();
        let resolver = StaticResolver::new()
            .with_agent("a", agent.clone())
            .with_agent("b", agent.clone());
        assert!(Arc::ptr_eq(
            &resolver.resolve("b", &Map::new()).await.unwrap(),
            &agent
        ));
        assert_eq!(
            resolver.resolve("c", &Map::new()).await.unwrap_err(),
            UnknownAssistant::NotFound("c".to_owned())
        );
        assert!(matches!(
            resolver.resolve("../c", &Map::new()).await.unwrap_err(),
            UnknownAssistant::InvalidName(_)
        ));
        assert_eq!(
            resolver
                .list()
                .await
                .iter()
                .map(|info| info.name.as_str())
                .collect::<Vec<_>>(),
            ["a", "b"]
        );
    }
}
