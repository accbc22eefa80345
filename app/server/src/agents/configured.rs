//! Assistants of an installation: built once per configuration, and rebuilt when it changes.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_gateway::ports::AccessControl;
use harness::acp::{AcpContext, InvokeAcpAgent};
use harness::agents::StaticResolver;
use harness::agents::conformance::{CONFORMANCE, ConformanceAgent};
use harness::agents::custom::CustomAgents;
use harness::agents::lead::{
    DEFAULT_FILE_TOOLS, Guards, LEAD_AGENT, LeadAgentSpec, LeadAgents, bash_tool,
    configured_models, file_tool, kind_of,
};
use harness::clock::Clock;
use harness::config::{AppConfig, COMMANDS, ModelConfig, RoleRules, ToolConfig};
use harness::flow::{AgentTarget, NodeAgent, NodeAgents};
use harness::messages::UsageMetadata;
use harness::models::{AuxiliaryModels, ModelCatalog};
use harness::runtime::actor_context::current;
use harness::runtime::agent::{Agent, AgentResolver, AssistantInfo, UnknownAssistant};
use harness::runtime::tasks::Tasks;
use harness::sandbox::FileHome;
use harness::skills::{SkillChoice, Skills};
use harness::tools::builtins::PresentFiles;
use harness::tools::web::WebToolFactory;
use harness::tools::{ToolRegistry, ToolSource, erase};
use harness::user_memory::{MemoryRules, UserMemories};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::guardrails::with_file;
use super::role_tools::RoleTools;
use super::web_tools;
use crate::config::ConfigHandle;
use crate::sandbox::OpenedSandbox;

/// Name of the tool that delegates to an ACP agent.
const INVOKE_ACP_AGENT: &str = "invoke_acp_agent";

/// Dependencies of all agents that do not depend on the configuration.
#[derive(Debug)]
pub(crate) struct AgentPorts {
    /// Files of threads.
    pub(crate) files: FileHome,
    /// Skills of the installation and of its users.
    pub(crate) skills: Skills,
    /// Memories of users.
    pub(crate) memories: UserMemories,
    /// Custom agents of users.
    pub(crate) custom: Arc<dyn CustomAgents>,
    /// Command sandbox, or why it is unavailable.
    pub(crate) commands: OpenedSandbox,
    /// Factory of web tools.
    pub(crate) web: Option<WebToolFactory>,
    /// Tools that change at run time.
    pub(crate) live_tools: Arc<dyn ToolSource>,
    /// Dependencies of ACP agents.
    pub(crate) acp: Arc<AcpContext>,
    /// Rules of roles.
    pub(crate) access: Arc<dyn AccessControl>,
    /// Clock of the agents: that of the database on Postgres.
    pub(crate) clock: Arc<dyn Clock>,
    /// Task set for checks of the files of agents.
    pub(crate) tasks: Tasks,
    /// `true` if agents for tests may be offered.
    pub(crate) testing: bool,
}

/// Assistants and auxiliary model users of the current configuration.
#[derive(Debug)]
pub(crate) struct ConfiguredAgents {
    config: ConfigHandle,
    ports: AgentPorts,
    /// Agents of the newest configuration, one entry per set of rules of a role.
    assembled: Mutex<Vec<Arc<Assembled>>>,
}

/// Everything that is built from one configuration.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) config: Arc<AppConfig>,
    /// Rules of the role that may use it.
    rules: RoleRules,
    /// Models for auxiliary requests.
    pub(crate) models: AuxiliaryModels,
    /// ACP agents, if there are any.
    pub(crate) acp: Option<Arc<InvokeAcpAgent>>,
    lead: Arc<LeadAgents>,
    agents: StaticResolver,
}

impl Assembled {
    /// Returns the names of the configured models that the role may not use.
    pub(super) fn forbidden_models(&self) -> Vec<String> {
        forbidden_models(&self.config, &self.rules)
    }

    /// Reports whether agents of the role may delegate to ACP agents, which run commands.
    pub(super) fn may_delegate(&self) -> bool {
        self.rules.sandbox.allows(COMMANDS) && self.rules.tools.allows(INVOKE_ACP_AGENT)
    }
}

fn forbidden_models(config: &AppConfig, rules: &RoleRules) -> Vec<String> {
    let names = config.models.iter().map(|model| &model.name);
    let forbidden = names.filter(|name| !rules.models.allows(name));
    forbidden.cloned().collect()
}

impl ConfiguredAgents {
    /// Creates the resolver of the current configuration's assistants.
    pub(crate) fn new(config: ConfigHandle, ports: AgentPorts) -> Self {
        Self {
            config,
            ports,
            assembled: Mutex::default(),
        }
    }

    /// Returns what is built from the current configuration, without restriction to a role; active
    /// runs keep what they started with.
    pub(crate) fn assembled(&self) -> Arc<Assembled> {
        self.assembled_by(RoleRules::default())
    }

    /// Returns what the role of the current actor may use.
    pub(super) async fn of_actor(
        &self,
        assistant: &str,
    ) -> Result<Arc<Assembled>, UnknownAssistant> {
        let rules = match current() {
            Some(actor) => self.ports.access.rules_of(&actor).await,
            None => Ok(None),
        };
        let rules = rules.map_err(|error| UnknownAssistant::Unusable {
            name: assistant.to_owned(),
            reason: format!("the role of the user is not known: {error}"),
        })?;
        Ok(self.assembled_by(rules.unwrap_or_default()))
    }

    fn assembled_by(&self, rules: RoleRules) -> Arc<Assembled> {
        let config = self.config.current();
        let mut assembled = self.assembled.lock();
        assembled.retain(|cached| Arc::ptr_eq(&cached.config, &config));
        if let Some(cached) = assembled.iter().find(|cached| cached.rules == rules) {
            return cached.clone();
        }
        let latest = Arc::new(self.assemble(config, rules));
        assembled.push(latest.clone());
        latest
    }

    fn assemble(&self, config: Arc<AppConfig>, rules: RoleRules) -> Assembled {
        let allowed: Vec<ModelConfig> = config
            .models
            .iter()
            .filter(|model| rules.models.allows(&model.name))
            .cloned()
            .collect();
        let models = configured_models(
            &config,
            ModelCatalog::from_config(&allowed, self.ports.clock.clone()),
        );
        let lead = LeadAgents::new(self.lead(&config, &models, &rules));
        let lead = Arc::new(lead.with_background_checks(self.ports.tasks.clone()));
        let agents = self.agents(&config, &models, lead.clone());
        let acp = InvokeAcpAgent::new(config.acp_agents.clone(), self.ports.acp.clone());
        Assembled {
            config,
            rules,
            models,
            acp: acp.map(Arc::new),
            lead,
            agents,
        }
    }

    fn lead(
        &self,
        config: &AppConfig,
        models: &AuxiliaryModels,
        rules: &RoleRules,
    ) -> LeadAgentSpec {
        LeadAgentSpec {
            forbidden_models: forbidden_models(config, rules),
            tools: self.tools(config, rules),
            live_tools: Some(Arc::new(RoleTools::new(
                self.ports.live_tools.clone(),
                rules.mcp_servers.clone(),
            ))),
            custom: Some(self.ports.custom.clone()),
            files: Some(self.ports.files.clone()),
            skills: Some(self.ports.skills.clone()),
            skill_choice: if rules.skills.allows_all() {
                SkillChoice::All
            } else {
                SkillChoice::By(rules.skills.clone())
            },
            guards: Guards {
                tool_rule: rules.tools.clone(),
                ..self.guards(config)
            },
            memory: Some((
                self.ports.memories.clone(),
                MemoryRules::from(&config.memory),
            )),
            ..LeadAgentSpec::configured(config, models)
        }
    }

    fn agents(
        &self,
        config: &AppConfig,
        models: &AuxiliaryModels,
        lead: Arc<LeadAgents>,
    ) -> StaticResolver {
        let agents = StaticResolver::new().with(LEAD_AGENT, lead);
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
    fn tools(&self, config: &AppConfig, rules: &RoleRules) -> ToolRegistry {
        let mut tools = ToolRegistry::new();
        for entry in &config.tools {
            match (kind_of(entry), &self.ports.commands) {
                ("bash", _) if !rules.sandbox.allows(COMMANDS) => {}
                ("bash", Ok(sandbox)) => {
                    tools.add(bash_tool(sandbox.clone(), config, &self.ports.files))
                }
                ("bash", Err(why)) => {
                    tracing::error!(tool = %entry.name, why, "commands cannot run here; the tool is disabled")
                }
                _ if web_tools::is_web(entry) => {
                    tools.extend(web_tools::tool(self.ports.web.as_ref(), entry))
                }
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
        let acp = InvokeAcpAgent::new(config.acp_agents.clone(), self.ports.acp.clone());
        tools.extend(acp.filter(|_| rules.sandbox.allows(COMMANDS)).map(erase));
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
impl NodeAgents for ConfiguredAgents {
    async fn agent(
        &self,
        target: &AgentTarget,
        options: &Map<String, Value>,
    ) -> Result<NodeAgent, UnknownAssistant> {
        let assembled = self.of_actor(LEAD_AGENT).await?;
        NodeAgents::agent(&*assembled.lead, target, options).await
    }

    fn cost_usd(&self, model: &str, usage: &UsageMetadata) -> Option<f64> {
        self.assembled().lead.cost_usd(model, usage)
    }
}

#[async_trait]
impl AgentResolver for ConfiguredAgents {
    async fn resolve(
        &self,
        assistant: &str,
        options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let assembled = self.of_actor(assistant).await?;
        assembled.agents.resolve(assistant, options).await
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        self.assembled().agents.list().await
    }

    async fn find(&self, name: &str) -> Option<AssistantInfo> {
        self.assembled().agents.find(name).await
    }

    async fn default_assistant(&self) -> Option<AssistantInfo> {
        self.assembled().agents.default_assistant().await
    }

    fn forget(&self) {
        for assembled in self.assembled.lock().iter() {
            assembled.agents.forget();
        }
    }
}
