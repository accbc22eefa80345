//! Assistants of an installation: built once per configuration, and rebuilt when it changes.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use harness::acp::{AcpContext, InvokeAcpAgent};
use harness::agents::StaticResolver;
use harness::agents::conformance::{CONFORMANCE, ConformanceAgent};
use harness::agents::custom::CustomAgents;
use harness::agents::lead::{
    DEFAULT_FILE_TOOLS, Guards, LEAD_AGENT, LeadAgentSpec, LeadAgents, bash_tool,
    configured_models, file_tool, kind_of,
};
use harness::clock::Clock;
use harness::config::{AppConfig, ModelConfig, ToolConfig};
use harness::models::{AuxiliaryModels, ModelCatalog, ProviderKind};
use harness::runtime::agent::{Agent, AgentResolver, AssistantInfo, UnknownAssistant};
use harness::sandbox::FileHome;
use harness::skills::Skills;
use harness::tools::builtins::PresentFiles;
use harness::tools::web::WebToolFactory;
use harness::tools::{ToolRegistry, ToolSource, erase};
use harness::user_memory::{MemoryRules, UserMemories};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::guardrails::with_file;
use super::web;
use crate::config::ConfigHandle;
use crate::sandbox::OpenedSandbox;

/// Returns the resolver of the current configuration's assistants.
pub(super) fn resolver(config: ConfigHandle, ports: AgentPorts) -> Arc<ConfiguredAgents> {
    Arc::new(ConfiguredAgents {
        config,
        ports,
        assembled: Mutex::new(None),
    })
}

/// Dependencies of all agents that do not depend on the configuration.
#[derive(Debug)]
pub(super) struct AgentPorts {
    /// Files of threads.
    pub(super) files: FileHome,
    /// Skills.
    pub(super) skills: Skills,
    /// Memories of users.
    pub(super) memories: UserMemories,
    /// Custom agents of users.
    pub(super) custom: Arc<dyn CustomAgents>,
    /// Command sandbox, or why it is unavailable.
    pub(super) commands: OpenedSandbox,
    /// Factory of web tools.
    pub(super) web: Option<WebToolFactory>,
    /// Tools that change at run time.
    pub(super) live_tools: Arc<dyn ToolSource>,
    /// Dependencies of ACP agents.
    pub(super) acp: Arc<AcpContext>,
    /// Clock.
    pub(super) clock: Arc<dyn Clock>,
    /// `true` if agents for tests may be offered.
    pub(super) testing: bool,
}

/// Returns the provider of a model entry, or what is wrong with the entry.
pub(super) fn check_entry(
    model: &ModelConfig,
    clock: Arc<dyn Clock>,
) -> Result<ProviderKind, String> {
    let kind = ProviderKind::parse(&model.provider).map_err(|error| error.to_string())?;
    // Fallbacks are separate entries.
    let mut alone = model.clone();
    alone.fallback_models.clear();
    ModelCatalog::from_config(&[alone], clock)
        .get(&model.name)
        .map_err(|error| error.message)?;
    Ok(kind)
}

/// Assistants and auxiliary model users of the current configuration.
#[derive(Debug)]
pub(super) struct ConfiguredAgents {
    config: ConfigHandle,
    ports: AgentPorts,
    assembled: Mutex<Option<Arc<Assembled>>>,
}

/// Everything that is built from one configuration.
#[derive(Debug)]
pub(super) struct Assembled {
    pub(super) config: Arc<AppConfig>,
    /// Models for auxiliary requests.
    pub(super) models: AuxiliaryModels,
    agents: StaticResolver,
}

impl ConfiguredAgents {
    /// Returns what is built from the current configuration; active runs keep what they started
    /// with.
    pub(super) fn assembled(&self) -> Arc<Assembled> {
        let config = self.config.current();
        let mut assembled = self.assembled.lock();
        if let Some(cached) = &*assembled
            && Arc::ptr_eq(&cached.config, &config)
        {
            return cached.clone();
        }
        let made = Arc::new(self.assemble(config));
        *assembled = Some(made.clone());
        made
    }

    fn assemble(&self, config: Arc<AppConfig>) -> Assembled {
        let models = configured_models(
            &config,
            ModelCatalog::from_config(&config.models, self.ports.clock.clone()),
        );
        let agents = self.agents(&config, &models);
        Assembled {
            config,
            models,
            agents,
        }
    }

    fn agents(&self, config: &AppConfig, models: &AuxiliaryModels) -> StaticResolver {
        let lead = LeadAgentSpec {
            tools: self.tools(config),
            live_tools: Some(self.ports.live_tools.clone()),
            custom: Some(self.ports.custom.clone()),
            files: Some(self.ports.files.clone()),
            skills: Some(self.ports.skills.clone()),
            guards: self.guards(config),
            memory: Some((
                self.ports.memories.clone(),
                MemoryRules::from(&config.memory),
            )),
            ..LeadAgentSpec::configured(config, models)
        };
        let agents = StaticResolver::new().with(LEAD_AGENT, LeadAgents::new(lead));
        match (config.testing.conformance_agent, self.ports.testing) {
            (true, true) => agents.with(CONFORMANCE, ConformanceAgent::new(models.catalog.clone())),
            (true, false) => {
                tracing::error!(
                    "testing.conformance_agent is ignored: this server does not listen on loopback only"
                );
                agents
            }
            (false, _) => agents,
        }
    }

    fn guards(&self, config: &AppConfig) -> Guards {
        let config_dir = self
            .config
            .path()
            .and_then(Path::parent)
            .unwrap_or(Path::new("."));
        Guards {
            guardrails: with_file(config.guardrails.clone(), config_dir),
            ..Guards::from(config)
        }
    }

    /// Returns the configured tools that this build supports, and the tools that every agent has.
    fn tools(&self, config: &AppConfig) -> ToolRegistry {
        let mut tools = ToolRegistry::new();
        for entry in &config.tools {
            match (kind_of(entry), &self.ports.commands) {
                ("bash", Ok(sandbox)) => {
                    tools.add(bash_tool(sandbox.clone(), config, &self.ports.files))
                }
                ("bash", Err(why)) => {
                    tracing::error!(tool = %entry.name, why, "commands cannot run here; the tool is disabled")
                }
                _ if web::is_web(entry) => tools.extend(web::tool(self.ports.web.as_ref(), entry)),
                (kind, _) => self.add_file_tool(kind, entry, config, &mut tools),
            }
        }
        if config.tools.is_empty() {
            for kind in DEFAULT_FILE_TOOLS {
                tools.extend(file_tool(kind, config, &self.ports.files));
            }
        }
        tools.add(erase(PresentFiles {
            home: self.ports.files.clone(),
        }));
        tools.extend(
            InvokeAcpAgent::new(config.acp_agents.clone(), self.ports.acp.clone()).map(erase),
        );
        tools
    }

    fn add_file_tool(
        &self,
        kind: &str,
        entry: &ToolConfig,
        config: &AppConfig,
        tools: &mut ToolRegistry,
    ) {
        match file_tool(kind, config, &self.ports.files) {
            Some(tool) => tools.add(tool),
            None => {
                tracing::warn!(tool = %entry.name, kind = %entry.implementation, "unknown tool is disabled")
            }
        }
    }
}

#[async_trait]
impl AgentResolver for ConfiguredAgents {
    async fn resolve(
        &self,
        assistant: &str,
        options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        self.assembled().agents.resolve(assistant, options).await
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        self.assembled().agents.list().await
    }

    fn forget(&self) {
        self.assembled().agents.forget();
    }
}
