//! Rules of roles for nodes of flows that use no agent of this server: model calls and ACP agents.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_flow::adapter::{
    AdapterContext, AdapterFactory, AdapterMetadata, AgentAdapter, ConfigFinding, ErrorCategory,
    FlowError,
};
use deerflow_flow::adapters::model::{ActorModelSource, ActorModels, ModelFactory};
use deerflow_flow::compiled::EffectiveAgent;
use harness::agents::lead::LEAD_AGENT;
use harness::clock::Clock;
use harness::flow::AcpFactory;
use harness::ids::IdSource;
use serde_json::{Map, Value};

use super::configured::{Assembled, ConfiguredAgents};

#[async_trait]
impl ActorModelSource for ConfiguredAgents {
    async fn models(&self) -> Result<ActorModels, FlowError> {
        let assembled = of_actor(self).await?;
        Ok(ActorModels {
            models: assembled.models.clone(),
            forbidden: assembled.forbidden_models(),
        })
    }
}

/// Creates the factory of the kind `model` over the models of the current configuration.
pub(crate) fn model_factory(
    agents: &Arc<ConfiguredAgents>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
) -> ModelFactory {
    let current = agents.clone();
    let models = Arc::new(move || current.assembled().models.clone());
    ModelFactory::of_current(models, clock, ids).with_actor_models(agents.clone())
}

async fn of_actor(agents: &ConfiguredAgents) -> Result<Arc<Assembled>, FlowError> {
    agents.of_actor(LEAD_AGENT).await.map_err(|error| {
        let (code, category) = ("agent_unavailable", ErrorCategory::Adapter);
        FlowError::new(code, category, error.to_string())
    })
}

/// Factory of the kind `acp`, for roles whose agents may delegate to ACP agents.
#[derive(Debug)]
pub(crate) struct RoleAcpFactory {
    all: AcpFactory,
    agents: Arc<ConfiguredAgents>,
}

impl RoleAcpFactory {
    /// Creates the factory of the ACP agents in the current configuration.
    pub(crate) fn new(agents: Arc<ConfiguredAgents>, ids: Arc<dyn IdSource>) -> Self {
        let current = agents.clone();
        let all = AcpFactory::of_current(Arc::new(move || current.assembled().acp.clone()), ids);
        Self { all, agents }
    }
}

#[async_trait]
impl AdapterFactory for RoleAcpFactory {
    fn metadata(&self) -> &AdapterMetadata {
        self.all.metadata()
    }

    fn aliases(&self) -> &[&str] {
        self.all.aliases()
    }

    fn has_default_turn_limit(&self) -> bool {
        self.all.has_default_turn_limit()
    }

    fn validate_config(
        &self,
        flow_config: &Map<String, Value>,
        agent: &EffectiveAgent,
    ) -> Vec<ConfigFinding> {
        self.all.validate_config(flow_config, agent)
    }

    async fn create(&self, context: AdapterContext) -> Result<Arc<dyn AgentAdapter>, FlowError> {
        if !of_actor(&self.agents).await?.may_delegate() {
            let text = "the role of the user may not run commands, so no ACP agent either";
            let (code, category) = ("not_permitted", ErrorCategory::Adapter);
            return Err(FlowError::new(code, category, text));
        }
        self.all.create(context).await
    }
}
