//! The assistants of an installation: assembled once per configuration, and anew when it changes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use harness::acp::{AcpSurroundings, InvokeAcpAgent};
use harness::agents::StaticResolver;
use harness::agents::conformance::{CONFORMANCE, ConformanceAgent};
use harness::agents::custom::CustomAgents;
use harness::agents::lead::{Guards, LEAD_AGENT, LeadAgentSpec, LeadAgents};
use harness::clock::Clock;
use harness::config::{AppConfig, ModelConfig, SandboxConfig, ToolConfig};
use harness::memory::{Memories, MemoryRules};
use harness::models::{AsideModels, BreakerPolicy, Breakers, ModelCatalog, ProviderKind, RetryPolicy};
use harness::runtime::agent::{Agent, AgentResolver, AssistantInfo, UnknownAssistant};
use harness::sandbox::{CommandSandbox, FileHome, Secrets};
use harness::skills::Skills;
use harness::tools::builtins::{Bash, Glob, Grep, Ls, PresentFiles, ReadFile, StrReplace, WriteFile};
use harness::tools::web::{WebKit, name_of};
use harness::tools::{DynTool, ToolRegistry, ToolSource, erase};
use parking_lot::Mutex;
use secrecy::ExposeSecret;
use serde_json::{Map, Value};

use super::commands::CommandPlace;
use super::guardrails::with_file;
use super::web;
use crate::config::ConfigHandle;

/// The assistants of the configuration in force.
pub(super) fn resolver(config: ConfigHandle, parts: Parts) -> Arc<ConfiguredAgents> {
    Arc::new(ConfiguredAgents { config, parts, assembled: Mutex::new(None) })
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
pub(super) fn check_entry(model: &ModelConfig, clock: Arc<dyn Clock>) -> Result<ProviderKind, String> {
    let kind = ProviderKind::parse(&model.provider).map_err(|error| error.to_string())?;
    // Its fallbacks are entries of their own.
    let mut alone = model.clone();
    alone.fallback_models.clear();
    ModelCatalog::from_config(&[alone], clock).get(&model.name).map_err(|error| error.message)?;
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
        let models = AsideModels {
            catalog: Arc::new(
                ModelCatalog::from_config(&config.models, self.parts.clock.clone()).with_usual_places(config.llm_call.max_concurrent_calls),
            ),
            breakers: Arc::new(Breakers::new(BreakerPolicy::from(&config.circuit_breaker))),
            retry: RetryPolicy::from(&config.llm_call),
        };
        let agents = self.agents(&config, &models);
        Assembled { config, models, agents }
    }

    fn agents(&self, config: &AppConfig, models: &AsideModels) -> StaticResolver {
        let lead = LeadAgentSpec {
            retry: models.retry,
            breakers: models.breakers.clone(),
            tools: self.tools(config),
            tool_groups: groups(&config.tools),
            live_tools: Some(self.parts.live_tools.clone()),
            tool_search: config.tool_search.clone(),
            custom: Some(self.parts.custom.clone()),
            files: Some(self.parts.files.clone()),
            skills: Some(self.parts.skills.clone()),
            defers_skills: config.skills.deferred_discovery,
            title: config.title.clone(),
            guards: self.guards(config),
            summarization: config.summarization.clone(),
            memory: Some((self.parts.memories.clone(), MemoryRules::from(&config.memory))),
            ..LeadAgentSpec::new(models.catalog.clone())
        };
        let agents = StaticResolver::new().with(LEAD_AGENT, LeadAgents::new(lead));
        match (config.testing.conformance_agent, self.parts.testing) {
            (true, true) => agents.with(CONFORMANCE, ConformanceAgent::new(models.catalog.clone())),
            (true, false) => {
                tracing::error!("testing.conformance_agent is left out: this server does not listen on loopback alone");
                agents
            }
            (false, _) => agents,
        }
    }

    fn guards(&self, config: &AppConfig) -> Guards {
        let beside = self.config.path().and_then(Path::parent).unwrap_or(Path::new("."));
        Guards { guardrails: with_file(config.guardrails.clone(), beside), ..Guards::from(config) }
    }

    /// The configured tools that this build has, then those that always belong to an agent.
    fn tools(&self, config: &AppConfig) -> ToolRegistry {
        let mut tools = ToolRegistry::new();
        for entry in &config.tools {
            match (kind_of(entry), &self.parts.commands) {
                ("bash", Ok(sandbox)) => tools.add(self.bash(sandbox.clone(), config)),
                ("bash", Err(why)) => tracing::error!(tool = %entry.name, why, "commands cannot be run here; the tool is left out"),
                _ if web::is_web(entry) => tools.extend(web::tool(self.parts.web.as_ref(), entry)),
                (kind, _) => self.add_file_tool(kind, entry, config, &mut tools),
            }
        }
        if config.tools.is_empty() {
            for kind in ["ls", "read_file", "write_file", "str_replace"] {
                tools.extend(self.file_tool(kind, config));
            }
        }
        tools.add(erase(PresentFiles { home: self.parts.files.clone() }));
        tools.extend(InvokeAcpAgent::new(config.acp_agents.clone(), self.parts.acp.clone()).map(erase));
        tools
    }

    fn bash(&self, sandbox: Arc<dyn CommandSandbox>, config: &AppConfig) -> Arc<dyn DynTool> {
        let SandboxConfig { bash_command_timeout, bash_output_max_chars, network, allow_host_bash, .. } = config.sandbox;
        let time_limit = Duration::from_secs(bash_command_timeout);
        let secrets = Secrets::new(config.sandbox.environment.values().map(|value| value.expose_secret()));
        let bash = Bash::new(self.parts.files.clone(), sandbox, time_limit, bash_output_max_chars, network || allow_host_bash);
        erase(bash.without(secrets))
    }

    fn add_file_tool(&self, kind: &str, entry: &ToolConfig, config: &AppConfig, tools: &mut ToolRegistry) {
        match self.file_tool(kind, config) {
            Some(tool) => tools.add(tool),
            None => tracing::warn!(tool = %entry.name, kind = %entry.implementation, "this build has no such tool; it is left out"),
        }
    }

    fn file_tool(&self, kind: &str, config: &AppConfig) -> Option<Arc<dyn DynTool>> {
        let home = self.parts.files.clone();
        match kind {
            "ls" => Some(erase(Ls { home, max_chars: config.sandbox.ls_output_max_chars })),
            "glob" => Some(erase(Glob { home })),
            "grep" => Some(erase(Grep { home })),
            "read_file" => Some(erase(ReadFile { home, max_chars: config.sandbox.read_file_output_max_chars })),
            "write_file" => Some(erase(WriteFile { home })),
            "str_replace" => Some(erase(StrReplace { home })),
            _ => None,
        }
    }
}

/// The tool of files or commands that a kind (`sandbox.ls`) or an older class path (`deerflow.sandbox.tools:ls_tool`) names.
pub(super) fn kind_of(entry: &ToolConfig) -> &str {
    let path = entry.implementation.as_str();
    let older = path.split_once("sandbox.tools:").map(|(_, name)| name.trim_end_matches("_tool"));
    older.or_else(|| path.strip_prefix("sandbox.")).unwrap_or(path)
}

/// The group of each tool, the first entry's where several name one. Agents know a tool by its kind, whatever its entry is called.
fn groups(entries: &[ToolConfig]) -> HashMap<String, String> {
    let known_as = |entry: &ToolConfig| name_of(&entry.implementation).unwrap_or_else(|| kind_of(entry)).to_owned();
    entries.iter().rev().map(|entry| (known_as(entry), entry.group.clone())).collect()
}

#[async_trait]
impl AgentResolver for ConfiguredAgents {
    async fn resolve(&self, assistant: &str, options: &Map<String, Value>) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        self.assembled().agents.resolve(assistant, options).await
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        self.assembled().agents.list().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_grouped_by_the_names_that_agents_know_them_by() {
        let entry = serde_json::json!({ "name": "reader", "group": "files", "use": "deerflow.sandbox.tools:read_file_tool" });
        let search = serde_json::json!({ "name": "find", "group": "web", "use": "deerflow.community.exa.tools:web_search_tool" });
        let groups = groups(&[entry, search].map(|entry| serde_json::from_value(entry).unwrap()));
        let expected = [("read_file", "files"), ("web_search", "web")].map(|(tool, group)| (tool.to_owned(), group.to_owned()));
        assert_eq!(groups, HashMap::from(expected));
    }

    #[test]
    fn kinds_and_older_paths_name_the_same_tools() {
        let kind = |path: &str| {
            let entry: ToolConfig = serde_json::from_value(serde_json::json!({ "name": "x", "group": "g", "use": path })).unwrap();
            kind_of(&entry).to_owned()
        };
        assert_eq!(kind("sandbox.read_file"), "read_file");
        assert_eq!(kind("deerflow.sandbox.tools:read_file_tool"), "read_file");
        assert_eq!(kind("src.sandbox.tools:ls_tool"), "ls");
        assert_eq!((kind("sandbox.bash"), kind("deerflow.sandbox.tools:bash_tool")), ("bash".to_owned(), "bash".to_owned()));
        assert_eq!(kind("deerflow.community.tavily.tools:web_search_tool"), "deerflow.community.tavily.tools:web_search_tool");
    }
}
