//! The assistants of an installation: assembled once per configuration, and anew when it changes.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use harness::acp::{AcpSurroundings, InvokeAcpAgent};
use harness::agents::StaticResolver;
use harness::agents::conformance::{CONFORMANCE, ConformanceAgent};
use harness::agents::custom::CustomAgents;
use harness::agents::lead::{
    Guards, LEAD_AGENT, LeadAgentSpec, LeadAgents, USUAL_FILE_TOOLS, bash_tool, configured_models,
    file_tool, kind_of,
};
use harness::clock::Clock;
use harness::config::{AppConfig, ModelConfig, ToolConfig};
use harness::memory::{Memories, MemoryRules};
use harness::models::{AsideModels, ModelCatalog, ProviderKind};
use harness::runtime::agent::{Agent, AgentResolver, AssistantInfo, UnknownAssistant};
use harness::sandbox::FileHome;
use harness::skills::Skills;
use harness::tools::builtins::PresentFiles;
use harness::tools::web::WebKit;
use harness::tools::{ToolRegistry, ToolSource, erase};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::commands::CommandPlace;
use super::guardrails::with_file;
use super::web;
use crate::config::ConfigHandle;

/// The assistants of the configuration in force.
pub(super) fn resolver(config: ConfigHandle, parts: Parts) -> Arc<ConfiguredAgents> {
    Arc::new(ConfiguredAgents {
        config,
        parts,
        assembled: Mutex::new(None),
    })
}

/// What agents have in common, whatever the configuration says.
#[derive(Debug)]
pub(super) struct Parts {
    /// The threads' files.
    pub(super) files: FileHome,
    /// What agents know how to do.
    pub(super) skills: Skills,
    /// What is remembered about users.
    pub(super) memories: Memories,
    /// Agents that users made.
    pub(super) custom: Arc<dyn CustomAgents>,
    /// Where commands run.
    pub(super) commands: CommandPlace,
    /// The way into the web.
    pub(super) web: Option<WebKit>,
    /// Tools that come and go.
    pub(super) live_tools: Arc<dyn ToolSource>,
    /// What agents need that are programs of their own.
    pub(super) acp: Arc<AcpSurroundings>,
    /// Time.
    pub(super) clock: Arc<dyn Clock>,
    /// Whether the agents of test setups may be among them.
    pub(super) testing: bool,
}

/// Which provider a model entry means, or what is wrong with the entry.
pub(super) fn check_entry(
    model: &ModelConfig,
    clock: Arc<dyn Clock>,
) -> Result<ProviderKind, String> {
    let kind = ProviderKind::parse(&model.provider).map_err(|error| error.to_string())?;
    // Its fallbacks are entries of their own.
    let mut alone = model.clone();
    alone.fallback_models.clear();
    ModelCatalog::from_config(&[alone], clock)
        .get(&model.name)
        .map_err(|error| error.message)?;
    Ok(kind)
}

/// The assistants, and whatever else asks models.
#[derive(Debug)]
pub(super) struct ConfiguredAgents {
    config: ConfigHandle,
    parts: Parts,
    assembled: Mutex<Option<Arc<Assembled>>>,
}

/// What one configuration makes.
#[derive(Debug)]
pub(super) struct Assembled {
    pub(super) config: Arc<AppConfig>,
    /// The models, for questions of the framework.
    pub(super) models: AsideModels,
    agents: StaticResolver,
}

impl ConfiguredAgents {
    /// What the configuration in force makes; runs under way keep what they began with.
    pub(super) fn assembled(&self) -> Arc<Assembled> {
        let config = self.config.current();
        let mut assembled = self.assembled.lock();
        if let Some(held) = &*assembled
            && Arc::ptr_eq(&held.config, &config)
        {
            return held.clone();
        }
        let made = Arc::new(self.assemble(config));
        *assembled = Some(made.clone());
        made
    }

    fn assemble(&self, config: Arc<AppConfig>) -> Assembled {
        let models = configured_models(
            &config,
            ModelCatalog::from_config(&config.models, self.parts.clock.clone()),
        );
        let agents = self.agents(&config, &models);
        Assembled {
            config,
            models,
            agents,
        }
    }

    fn agents(&self, config: &AppConfig, models: &AsideModels) -> StaticResolver {
        let lead = LeadAgentSpec {
            tools: self.tools(config),
            live_tools: Some(self.parts.live_tools.clone()),
            custom: Some(self.parts.custom.clone()),
            files: Some(self.parts.files.clone()),
            skills: Some(self.parts.skills.clone()),
            guards: self.guards(config),
            memory: Some((
                self.parts.memories.clone(),
                MemoryRules::from(&config.memory),
            )),
            ..LeadAgentSpec::configured(config, models)
        };
        let agents = StaticResolver::new().with(LEAD_AGENT, LeadAgents::new(lead));
        match (config.testing.conformance_agent, self.parts.testing) {
            (true, true) => agents.with(CONFORMANCE, ConformanceAgent::new(models.catalog.clone())),
            (true, false) => {
                tracing::error!(
                    "testing.conformance_agent is left out: this server does not listen on loopback alone"
                );
                agents
            }
            (false, _) => agents,
        }
    }

    fn guards(&self, config: &AppConfig) -> Guards {
        let beside = self
            .config
            .path()
            .and_then(Path::parent)
            .unwrap_or(Path::new("."));
        Guards {
            guardrails: with_file(config.guardrails.clone(), beside),
            ..Guards::from(config)
        }
    }

    /// The configured tools that this build has, then those that always belong to an agent.
    fn tools(&self, config: &AppConfig) -> ToolRegistry {
        let mut tools = ToolRegistry::new();
        for entry in &config.tools {
            match (kind_of(entry), &self.parts.commands) {
                ("bash", Ok(sandbox)) => {
                    tools.add(bash_tool(sandbox.clone(), config, &self.parts.files))
                }
                ("bash", Err(why)) => {
                    tracing::error!(tool = %entry.name, why, "commands cannot be run here; the tool is left out")
                }
                _ if web::is_web(entry) => tools.extend(web::tool(self.parts.web.as_ref(), entry)),
                (kind, _) => self.add_file_tool(kind, entry, config, &mut tools),
            }
        }
        if config.tools.is_empty() {
            for kind in USUAL_FILE_TOOLS {
                tools.extend(file_tool(kind, config, &self.parts.files));
            }
        }
        tools.add(erase(PresentFiles {
            home: self.parts.files.clone(),
        }));
        tools.extend(
            InvokeAcpAgent::new(config.acp_agents.clone(), self.parts.acp.clone()).map(erase),
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
        match file_tool(kind, config, &self.parts.files) {
            Some(tool) => tools.add(tool),
            None => {
                tracing::warn!(tool = %entry.name, kind = %entry.implementation, "this build has no such tool; it is left out")
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
