//! Factory of the kind `deerflow`.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::KIND;
use super::agents::NodeAgents;
use super::settings::Settings;
use super::turn::DeerflowAdapter;
use crate::flow::adapter::{
    AdapterContext, AdapterFactory, AdapterMetadata, AgentAdapter, CONTRACT_VERSION, Capability,
    ConfigFinding, ErrorCategory, FlowError,
};
use crate::flow::compiled::EffectiveAgent;
use crate::ids::IdSource;

/// Factory of the kind `deerflow`, alias `harness`.
#[derive(Debug)]
pub struct DeerflowFactory {
    metadata: AdapterMetadata,
    agents: Arc<dyn NodeAgents>,
    ids: Arc<dyn IdSource>,
}

impl DeerflowFactory {
    /// Creates the factory. `ids` creates the ids of sessions.
    pub fn new(agents: Arc<dyn NodeAgents>, ids: Arc<dyn IdSource>) -> Self {
        let metadata = AdapterMetadata {
            adapter_kind: KIND.to_owned(),
            display_name: "DeerFlow agent".to_owned(),
            adapter_version: env!("CARGO_PKG_VERSION").to_owned(),
            contract_version: CONTRACT_VERSION.to_owned(),
            supported_capabilities: vec![
                Capability::StructuredOutput,
                Capability::ToolCalls,
                Capability::InterruptResume,
            ],
            limitations: vec![
                "needs a run of the runtime".to_owned(),
                "temperature and maxTokens are those of the model entry".to_owned(),
            ],
        };
        Self {
            metadata,
            agents,
            ids,
        }
    }
}

#[async_trait]
impl AdapterFactory for DeerflowFactory {
    fn metadata(&self) -> &AdapterMetadata {
        &self.metadata
    }

    fn aliases(&self) -> &[&str] {
        &["harness"]
    }

    /// Turns with tools and questions have no typical duration.
    fn has_default_turn_limit(&self) -> bool {
        false
    }

    fn validate_config(
        &self,
        flow_config: &Map<String, Value>,
        agent: &EffectiveAgent,
    ) -> Vec<ConfigFinding> {
        Settings::read(flow_config, agent).err().unwrap_or_default()
    }

    async fn create(&self, context: AdapterContext) -> Result<Arc<dyn AgentAdapter>, FlowError> {
        let settings = Settings::read(&context.flow_config, &context.agent);
        let settings = settings.map_err(|findings| {
            let messages: Vec<String> = findings.into_iter().map(|found| found.message).collect();
            let (code, category) = ("adapter_config_invalid", ErrorCategory::Validation);
            FlowError::new(code, category, messages.join("; "))
        })?;
        Ok(Arc::new(DeerflowAdapter {
            settings,
            agents: self.agents.clone(),
            ids: self.ids.clone(),
        }))
    }
}
