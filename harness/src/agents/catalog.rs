//! Catalog that resolves agents by name. A catalog belongs to one configuration; a changed
//! configuration gets a new catalog.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::ids::MAX_ID_LEN;
use crate::runtime::agent::{Agent, AgentResolver, AssistantInfo, UnknownAssistant};

/// Source of the agents of one assistant.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use deerflow_harness::agents::{AgentSource, StaticResolver};
/// use deerflow_harness::runtime::agent::{Agent, UnknownAssistant};
/// use serde_json::{Map, Value};
///
/// /// Two agents, selected by the option `plan_mode` of a run.
/// #[derive(Debug)]
/// struct Planning {
///     planner: Arc<dyn Agent>,
///     worker: Arc<dyn Agent>,
/// }
///
/// #[async_trait]
/// impl AgentSource for Planning {
///     async fn agent(
///         &self,
///         options: &Map<String, Value>,
///     ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
///         let plans = options.get("plan_mode").and_then(Value::as_bool);
///         let agent = if plans == Some(true) { &self.planner } else { &self.worker };
///         Ok(agent.clone())
///     }
/// }
///
/// fn resolver(source: Planning) -> StaticResolver {
///     StaticResolver::new().with("lead", source)
/// }
/// ```
#[async_trait]
pub trait AgentSource: Send + Sync + fmt::Debug + 'static {
    /// Returns a one-line description of the assistant.
    fn description(&self) -> Option<&str> {
        None
    }

    /// Returns the agent for a run of the current actor with these options, from a cache or newly
    /// built.
    async fn agent(&self, options: &Map<String, Value>)
    -> Result<Arc<dyn Agent>, UnknownAssistant>;

    /// Drops cached agents; active runs keep the agent they started with.
    fn forget(&self) {}
}

#[async_trait]
impl<T: AgentSource> AgentSource for Arc<T> {
    fn description(&self) -> Option<&str> {
        (**self).description()
    }

    async fn agent(
        &self,
        options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        (**self).agent(options).await
    }

    fn forget(&self) {
        (**self).forget();
    }
}

/// Source that returns the same agent for every run and ignores the options.
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

/// Fixed set of assistants.
#[derive(Debug, Default)]
pub struct StaticResolver {
    sources: IndexMap<String, Box<dyn AgentSource>>,
}

impl StaticResolver {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an assistant and replaces one of the same name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, source: impl AgentSource) -> Self {
        self.sources.insert(name.into(), Box::new(source));
        self
    }

    /// Adds an assistant that always resolves to this agent.
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
        let all = self.sources.iter();
        all.map(|(name, source)| info(name, &**source)).collect()
    }

    async fn find(&self, name: &str) -> Option<AssistantInfo> {
        let source = self.sources.get(name)?;
        Some(info(name, &**source))
    }

    async fn default_assistant(&self) -> Option<AssistantInfo> {
        let (name, source) = self.sources.first()?;
        Some(info(name, &**source))
    }
}

fn info(name: &str, source: &dyn AgentSource) -> AssistantInfo {
    AssistantInfo {
        name: name.to_owned(),
        description: source.description().map(str::to_owned),
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
    async fn resolver_finds_assistants_and_rejects_unknown_names() {
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
        let name = |info: Option<AssistantInfo>| info.map(|info| info.name);
        assert_eq!(name(resolver.find("b").await).as_deref(), Some("b"));
        assert_eq!(resolver.find("c").await, None);
        assert_eq!(
            name(resolver.default_assistant().await).as_deref(),
            Some("a")
        );
    }
}
