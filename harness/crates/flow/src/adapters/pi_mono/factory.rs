//! Factory of the kind `pi-mono`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deerflow_core::clock::Clock;
use deerflow_core::config::Variables;
use deerflow_core::ids::IdSource;
use deerflow_core::net::{Egress, GuardedClient, Lookup, Ports};
use serde_json::{Map, Value, json};

use super::agent::PiMonoAdapter;
use super::call::Caller;
use super::deepseek::DeepSeekTransport;
use super::failure::{KIND, adapter_error, invalid_config};
use super::findings::{MISSING_MODEL, findings};
use super::http::HttpTransport;
use super::secrets::SecretResolver;
use super::settings::{ApiKey, PiMonoOptions, PiMonoSettings, SettingsInput, TransportKind};
use super::transport::TurnTransport;
use crate::adapter::{
    AdapterContext, AdapterFactory, AdapterMetadata, AgentAdapter, CONTRACT_VERSION, Capability,
    ConfigFinding, FlowError, TurnEffect,
};
use crate::compiled::EffectiveAgent;

/// Alias that implies the DeepSeek-compatible transport.
const DEEPSEEK_ALIAS: &str = "deepseek";
/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time without a received byte; a comment of an event stream counts as one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Dependencies of a factory of this kind.
#[derive(Debug, Clone)]
pub struct PiMonoPorts {
    /// Options of the application.
    pub options: PiMonoOptions,
    /// Environment of the application, read once at its start.
    pub variables: Variables,
    /// Secrets that configurations name.
    pub secrets: Arc<dyn SecretResolver>,
    /// Resolver of host names.
    pub lookup: Arc<dyn Lookup>,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Source of session ids.
    pub ids: Arc<dyn IdSource>,
}

/// Error: the HTTP client cannot be created, for example because the system's certificates cannot
/// be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot create the HTTP client of the adapter kind pi-mono: {0}")]
pub struct ClientUnavailable(String);

/// Factory of the kind `pi-mono`. Its adapters share connections.
#[derive(Debug)]
pub struct PiMonoFactory {
    metadata: AdapterMetadata,
    ports: PiMonoPorts,
    /// Client for origins that the application configures or allows.
    trusted: GuardedClient,
    /// Client for origins that only a flow names: reaches no private network.
    guarded: GuardedClient,
    idle: Duration,
}

impl PiMonoFactory {
    /// Creates the factory.
    pub fn new(ports: PiMonoPorts) -> Result<Self, ClientUnavailable> {
        let client = |allow_private: bool| {
            let egress = Egress {
                allow_private,
                ports: if allow_private {
                    Ports::Any
                } else {
                    Ports::Web
                },
                ..Egress::default()
            };
            GuardedClient::new(egress, ports.lookup.clone(), |client| {
                client
                    .user_agent(concat!("deerflow/", env!("CARGO_PKG_VERSION")))
                    .connect_timeout(CONNECT_TIMEOUT)
                    .tcp_nodelay(true)
                    .tcp_keepalive(Duration::from_secs(30))
                    // Compressed streams arrive in blocks and may expand without limit.
                    .no_gzip()
            })
            .map_err(|error| ClientUnavailable(error.to_string()))
        };
        Ok(Self {
            metadata: metadata(),
            trusted: client(true)?,
            guarded: client(false)?,
            ports,
            idle: IDLE_TIMEOUT,
        })
    }

    /// Sets the maximum time without a received byte.
    #[must_use]
    pub fn with_idle_timeout(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// Resolves the settings of an agent.
    pub fn settings(
        &self,
        flow_config: &Map<String, Value>,
        agent: &EffectiveAgent,
    ) -> PiMonoSettings {
        let mut flow_config = flow_config.clone();
        if agent.adapter_kind == DEEPSEEK_ALIAS {
            let transport = json!(TransportKind::DeepSeek.as_str());
            flow_config
                .entry("transport".to_owned())
                .or_insert(transport);
        }
        PiMonoSettings::resolve(&SettingsInput {
            agent_config: &agent.adapter_config,
            flow_config: &flow_config,
            profile: &agent.model_profile,
            options: &self.ports.options,
            variables: &self.ports.variables,
        })
    }
}

#[async_trait]
impl AdapterFactory for PiMonoFactory {
    fn metadata(&self) -> &AdapterMetadata {
        &self.metadata
    }

    fn aliases(&self) -> &[&str] {
        &[DEEPSEEK_ALIAS]
    }

    fn validate_config(
        &self,
        flow_config: &Map<String, Value>,
        agent: &EffectiveAgent,
    ) -> Vec<ConfigFinding> {
        findings(&self.settings(flow_config, agent))
    }

    async fn create(&self, context: AdapterContext) -> Result<Arc<dyn AgentAdapter>, FlowError> {
        let settings = self.settings(&context.flow_config, &context.agent);
        let found = findings(&settings);
        // A node may name the model that the agent does not.
        if found.iter().any(|finding| finding.code != MISSING_MODEL) {
            return Err(invalid_config(&found));
        }
        let is_trusted = settings.is_trusted();
        let (Some(base_url), Ok(kind)) = (settings.base_url, settings.transport) else {
            return Err(invalid_config(&found));
        };
        let key = match settings.api_key.map(|key| key.value) {
            Some(ApiKey::Secret(name)) => {
                let secret = self.ports.secrets.resolve(&context.actor, &name).await;
                Some(secret.ok_or_else(|| secret_missing(&name))?)
            }
            Some(ApiKey::Literal(key)) => Some(key),
            None => None,
        };
        let client = if is_trusted {
            &self.trusted
        } else {
            &self.guarded
        };
        let caller = Caller {
            client: client.clone(),
            base_url: base_url.value,
            key: key.clone(),
            clock: self.ports.clock.clone(),
        };
        let transport: Box<dyn TurnTransport> = match kind {
            TransportKind::DeepSeek => Box::new(DeepSeekTransport {
                caller,
                ids: self.ports.ids.clone(),
            }),
            TransportKind::Http => {
                let effect = settings.effect.unwrap_or(TurnEffect::Unsafe);
                Box::new(HttpTransport { caller, effect })
            }
        };
        Ok(Arc::new(PiMonoAdapter {
            transport,
            kind,
            key,
            model: settings.model.map(|model| model.value),
            temperature: settings.temperature.map(|temperature| temperature.value),
            idle: self.idle,
        }))
    }
}

fn metadata() -> AdapterMetadata {
    AdapterMetadata {
        adapter_kind: KIND.to_owned(),
        display_name: "pi-mono".to_owned(),
        adapter_version: env!("CARGO_PKG_VERSION").to_owned(),
        contract_version: CONTRACT_VERSION.to_owned(),
        supported_capabilities: vec![
            Capability::Streaming,
            Capability::StructuredOutput,
            Capability::MultiTurnSession,
        ],
        limitations: vec![
            "tool calls are reported and not executed".to_owned(),
            "transport http streams only if the server answers with an event stream".to_owned(),
        ],
    }
}

fn secret_missing(name: &str) -> FlowError {
    let name: String = name.chars().take(128).collect();
    adapter_error(
        "adapter_config_invalid",
        format!("the configuration names secret {name:?}, which does not exist"),
    )
}
