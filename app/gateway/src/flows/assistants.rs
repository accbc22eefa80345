//! Flows as assistants: `flow-<slug>` names a flow of the user or of the system, and all other
//! names belong to the agents.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_domain::flows::is_slug;
use deerflow_flow::adapter::{ErrorCategory, FlowError};
use deerflow_flow::agent::{FlowAgent, FlowDependencies};
use deerflow_flow::compiled::CompiledFlow;
use deerflow_flow::driver::FlowSource;
use deerflow_flow::finding::Validation;
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::agent::{
    Agent, AgentResolver, AssistantDetails, AssistantInfo, AssistantKind, AssistantPin,
    UnknownAssistant,
};
use harness::runtime::runs::store::StoreError;
use serde_json::{Map, Value, json};

use super::catalog::{FlowCatalog, Unpinned};
use super::version::{FlowListing, FlowVersion};

/// Prefix of the names of flows.
const PREFIX: &str = "flow-";

/// Resolver of agents and flows. A run of an agent reads no flow.
#[derive(Debug)]
pub struct FlowAssistants {
    agents: Arc<dyn AgentResolver>,
    catalog: Arc<FlowCatalog>,
    dependencies: Arc<FlowDependencies>,
}

impl FlowAssistants {
    /// Creates a resolver that adds the flows of a catalog to agents.
    pub fn new(
        agents: Arc<dyn AgentResolver>,
        catalog: Arc<FlowCatalog>,
        dependencies: FlowDependencies,
    ) -> Self {
        let dependencies = FlowDependencies {
            flows: Some(Arc::new(CatalogFlows(catalog.clone()))),
            ..dependencies
        };
        Self {
            agents,
            catalog,
            dependencies: Arc::new(dependencies),
        }
    }

    /// Ports and limits of the runs of flows.
    pub fn dependencies(&self) -> &FlowDependencies {
        &self.dependencies
    }

    /// Returns a flow in its current version. `None` if the name is not that of a flow.
    async fn flow(&self, name: &str) -> Result<Option<FlowVersion>, UnknownAssistant> {
        let Some(slug) = flow_slug(name) else {
            return Ok(None);
        };
        self.catalog
            .find(&effective_user_id(), slug)
            .await
            .map_err(|error| unavailable(name, &error))
    }

    async fn agent(
        &self,
        name: &str,
        flow: &FlowVersion,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let compiled = self.catalog.compiled(flow).await;
        let compiled = compiled.map_err(|validation| invalid(name, &validation))?;
        Ok(self.agent_of(compiled))
    }

    fn agent_of(&self, flow: Arc<CompiledFlow>) -> Arc<dyn Agent> {
        Arc::new(FlowAgent::new(flow, self.dependencies.clone()))
    }

    /// Returns the details of all flows of the bound actor; none if they cannot be read, because a
    /// list of assistants is more useful than an error.
    async fn flows(&self) -> Vec<AssistantDetails> {
        match self.catalog.list(&effective_user_id()).await {
            Ok(flows) => flows.iter().map(details_of).collect(),
            Err(error) => {
                tracing::warn!(%error, "flows cannot be listed");
                Vec::new()
            }
        }
    }
}

#[async_trait]
impl AgentResolver for FlowAssistants {
    async fn resolve(
        &self,
        assistant: &str,
        options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        match self.flow(assistant).await? {
            Some(flow) => self.agent(assistant, &flow).await,
            None => self.agents.resolve(assistant, options).await,
        }
    }

    async fn pin(
        &self,
        assistant: &str,
        options: &Map<String, Value>,
    ) -> Result<Option<AssistantPin>, UnknownAssistant> {
        let Some(slug) = flow_slug(assistant) else {
            return self.agents.pin(assistant, options).await;
        };
        let pin = self.catalog.pin(&effective_user_id(), slug).await;
        match pin.map_err(|error| unpinned(assistant, error))? {
            Some(pin) => Ok(Some(pin)),
            // An agent may have such a name from before there were flows.
            None if self.agents.find(assistant).await.is_some() => {
                self.agents.pin(assistant, options).await
            }
            // A thread that waits in a deleted flow has a pin of its own.
            None => Err(UnknownAssistant::NotFound(assistant.to_owned())),
        }
    }

    async fn resolve_pinned(
        &self,
        assistant: &str,
        options: &Map<String, Value>,
        pin: Option<&AssistantPin>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let (Some(slug), Some(pin)) = (flow_slug(assistant), pin) else {
            return self.resolve(assistant, options).await;
        };
        let user = effective_user_id();
        let pinned = self.catalog.compiled_pin(&user, slug, pin).await;
        match pinned.map_err(|error| unpinned(assistant, error))? {
            Some(flow) => Ok(self.agent_of(flow)),
            None => Err(UnknownAssistant::Unusable {
                name: assistant.to_owned(),
                reason: format!("version {} is no longer stored", pin.version),
            }),
        }
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        let mut all = self.agents.list().await;
        all.extend(self.flows().await.into_iter().map(|details| details.info));
        all
    }

    async fn find(&self, name: &str) -> Option<AssistantInfo> {
        self.details(name).await.map(|details| details.info)
    }

    async fn default_assistant(&self) -> Option<AssistantInfo> {
        self.agents.default_assistant().await
    }

    async fn details(&self, name: &str) -> Option<AssistantDetails> {
        let Some(slug) = flow_slug(name) else {
            return self.agents.details(name).await;
        };
        match self.catalog.record(&effective_user_id(), slug).await {
            Ok(Some((owner, record))) => Some(details_of(&FlowListing {
                owner,
                record,
                errors: Vec::new(),
            })),
            // An agent may have such a name from before there were flows.
            Ok(None) => self.agents.details(name).await,
            Err(error) => {
                tracing::warn!(%error, "a flow cannot be read");
                None
            }
        }
    }

    async fn list_details(&self) -> Vec<AssistantDetails> {
        let mut all = self.agents.list_details().await;
        all.extend(self.flows().await);
        all
    }

    fn forget(&self) {
        self.agents.forget();
    }
}

/// Flows that `control.subflow` names: those of the user that the run acts for.
#[derive(Debug)]
struct CatalogFlows(Arc<FlowCatalog>);

#[async_trait]
impl FlowSource for CatalogFlows {
    async fn get(&self, flow_id: &str) -> Result<Option<Arc<CompiledFlow>>, FlowError> {
        let slug = flow_slug(flow_id).unwrap_or(flow_id);
        let unavailable = |error: StoreError| {
            let message = format!("flow {flow_id:?} cannot be read: {error}");
            FlowError::new("flow_unavailable", ErrorCategory::Engine, message).retryable(true)
        };
        let found = self.0.find(&effective_user_id(), slug).await;
        let Some(flow) = found.map_err(unavailable)? else {
            return Ok(None);
        };
        let compiled = self.0.compiled(&flow).await;
        compiled.map(Some).map_err(|validation| {
            let message = match validation.errors.first() {
                Some(first) => format!("flow {flow_id:?} is invalid: {}", first.message),
                None => format!("flow {flow_id:?} is invalid"),
            };
            FlowError::new("flow_invalid", ErrorCategory::Validation, message)
        })
    }
}

/// Returns the id of the flow that an assistant runs. `None` if the name is not that of a flow.
pub(crate) fn flow_slug(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX).filter(|slug| is_slug(slug))
}

fn details_of(flow: &FlowListing) -> AssistantDetails {
    let record = &flow.record;
    let mut details = AssistantDetails::from(AssistantInfo {
        name: format!("{PREFIX}{}", record.slug),
        description: record
            .summary
            .description
            .clone()
            .or_else(|| Some(record.summary.name.clone())),
    });
    details.kind = AssistantKind::Flow;
    details.created_at = Some(record.created_at);
    details.updated_at = Some(record.updated_at);
    details.metadata = Map::from_iter([
        ("kind".to_owned(), json!("flow")),
        ("owner".to_owned(), json!(flow.owner.as_str())),
        ("flow_version".to_owned(), json!(record.version)),
        ("content_hash".to_owned(), json!(record.content_hash)),
        (
            "schema_version".to_owned(),
            json!(record.summary.schema_version),
        ),
    ]);
    details
}

fn invalid(name: &str, validation: &Validation) -> UnknownAssistant {
    UnknownAssistant::Invalid {
        name: name.to_owned(),
        findings: validation
            .errors
            .iter()
            .map(|finding| json!(finding))
            .collect(),
    }
}

fn unpinned(name: &str, error: Unpinned) -> UnknownAssistant {
    match error {
        Unpinned::Store(error) => unavailable(name, &error),
        Unpinned::Invalid(validation) => invalid(name, &validation),
    }
}

fn unavailable(name: &str, error: &StoreError) -> UnknownAssistant {
    UnknownAssistant::Unusable {
        name: name.to_owned(),
        reason: format!("the flow cannot be read: {error}"),
    }
}
