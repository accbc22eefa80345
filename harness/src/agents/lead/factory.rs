//! Puts lead agents together: one per model and way of asking it, each built once and shared by its runs.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::guards::Guards;
use super::options::{LeadOptions, agent_name};
use super::persona::Persona;
use super::prompt::{PromptFacts, system_prompt};
use crate::agents::AgentBuilder;
use crate::agents::agent_loop::{ModelSettings, Patience};
use crate::agents::catalog::AgentSource;
use crate::agents::custom::{AgentName, CustomAgent, CustomAgentError, CustomAgents, ModelOverrides, SetupAgent, UpdateAgent};
use crate::config::{SummarizationConfig, TitleConfig};
use crate::memory::{Memories, MemoryRules};
use crate::middlewares::summarization::Compactor;
use crate::middlewares::{
    ClarificationMiddleware, DanglingToolCallMiddleware, LlmErrorMiddleware, MemoryMiddleware, Middleware, SummarizationMiddleware, TASK,
    ThreadDataMiddleware, TitleMiddleware, TodoMiddleware, ToolErrorMiddleware, UploadsMiddleware, ViewImageMiddleware, order,
};
use crate::models::{AsideModels, Breakers, ModelCatalog, RetryPolicy};
use crate::runtime::actor_context::effective_user_id;
use crate::runtime::agent::{Agent, UnknownAssistant};
use crate::sandbox::FileHome;
use crate::tools::builtins::{ASK_CLARIFICATION, AskClarification, ViewImage, WriteTodos};
use crate::tools::{ToolRegistry, erase};

/// The lead agent's name as an assistant.
pub const LEAD_AGENT: &str = "lead_agent";
/// Agents kept at most. Options are free text, so their combinations have no end.
const MOST_KEPT: usize = 64;

/// What lead agents are made of.
#[derive(Debug, Clone)]
pub struct LeadAgentSpec {
    /// Whom the user talks with.
    pub display_name: String,
    /// The models; the first is the default.
    pub models: Arc<ModelCatalog>,
    /// When failed model calls are made again.
    pub retry: RetryPolicy,
    /// The models' circuits.
    pub breakers: Arc<Breakers>,
    /// The tools, `ask_clarification` aside.
    pub tools: ToolRegistry,
    /// The group of each configured tool.
    pub tool_groups: HashMap<String, String>,
    /// Where agents that users make are kept, when there is such a place.
    pub custom: Option<Arc<dyn CustomAgents>>,
    /// The threads' files, when there are any.
    pub files: Option<FileHome>,
    /// How conversations are named.
    pub title: TitleConfig,
    /// What watches over its runs.
    pub guards: Guards,
    /// How conversations are shortened that outgrow their model.
    pub summarization: SummarizationConfig,
    /// What is remembered about users, if anything is.
    pub memory: Option<(Memories, MemoryRules)>,
    /// Further middlewares; they take their places by name.
    pub middlewares: Vec<Arc<dyn Middleware>>,
}

impl LeadAgentSpec {
    /// A lead agent with these models and no tools of its own.
    pub fn new(models: Arc<ModelCatalog>) -> Self {
        Self {
            display_name: "DeerFlow".to_owned(),
            models,
            retry: RetryPolicy::default(),
            breakers: Arc::default(),
            tools: ToolRegistry::new(),
            tool_groups: HashMap::new(),
            custom: None,
            files: None,
            title: TitleConfig::default(),
            guards: Guards::default(),
            summarization: SummarizationConfig::default(),
            memory: None,
            middlewares: Vec::new(),
        }
    }

    /// The same models, to be asked by the framework itself.
    fn aside(&self) -> AsideModels {
        AsideModels { catalog: self.models.clone(), breakers: self.breakers.clone(), retry: self.retry }
    }
}

/// The lead agents of one configuration.
#[derive(Debug)]
pub struct LeadAgents {
    spec: LeadAgentSpec,
    /// By options and by what the agent's user made of it.
    built: Mutex<HashMap<(LeadOptions, String), Arc<dyn Agent>>>,
}

impl LeadAgents {
    /// Agents of this make.
    pub fn new(spec: LeadAgentSpec) -> Self {
        Self { spec, built: Mutex::default() }
    }

    /// Who the run is with: the custom agent that it names, or the agent without a name as its user wants it.
    async fn persona(&self, options: &Map<String, Value>, bootstrap: bool) -> Result<Persona, UnknownAssistant> {
        let name = agent_name(options).map_err(|error| UnknownAssistant::InvalidName(error.0))?;
        let Some(agents) = self.spec.custom.as_ref().filter(|_| !bootstrap) else { return Ok(Persona::default()) };
        let user = effective_user_id();
        let unusable = |name: String| move |error: CustomAgentError| UnknownAssistant::Unusable { name, reason: error.to_string() };
        let Some(name) = name else {
            let soul = agents.default_soul(&user).await.map_err(unusable(LEAD_AGENT.to_owned()))?;
            return Ok(Persona { name: None, agent: CustomAgent { soul, ..CustomAgent::default() } });
        };
        match agents.get(&user, &name).await.map_err(unusable(name.to_string()))? {
            Some(agent) => Ok(Persona { name: Some(name), agent }),
            None => Err(UnknownAssistant::NotFound(name.to_string())),
        }
    }

    fn build(&self, options: &LeadOptions, persona: &Persona) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let spec = &self.spec;
        if let Some(name) = options.model.as_deref().filter(|name| spec.models.entry(name).is_none()) {
            return Err(UnknownAssistant::UnknownModel(name.to_owned()));
        }
        let own = persona.agent.model.as_deref().filter(|name| {
            let known = spec.models.entry(name).is_some();
            if !known {
                tracing::warn!(model = %name, agent = ?persona.name, "an agent names a model that is not configured; it gets the default");
            }
            known
        });
        let model = spec
            .models
            .get_or_default(options.model.as_deref().or(own))
            .map_err(|error| UnknownAssistant::Unusable { name: LEAD_AGENT.to_owned(), reason: error.to_string() })?;
        let name = model.info().name.clone();
        let supports_thinking = spec.models.entry(&name).is_some_and(|entry| entry.supports_thinking);
        let tools = self.tools(options, persona, model.info().supports_vision);
        let facts = PromptFacts {
            name: persona.name.as_ref().map_or(&*spec.display_name, AgentName::as_str),
            soul: &persona.agent.soul,
            makes_agent: tools.get("setup_agent").is_some(),
            can_change_itself: tools.get("update_agent").is_some(),
            can_ask: tools.get(ASK_CLARIFICATION).is_some(),
            has_files: spec.files.is_some(),
            plans: options.plan_mode,
            most_tasks: tools.get(TASK).map(|_| spec.guards.subagents.max_total_per_run),
            tools: tools.names().collect(),
        };
        let prompt = system_prompt(&facts);
        let middlewares = self.middlewares(options, &name, &tools);
        Ok(AgentBuilder::new(model)
            .name(persona.name.as_ref().map_or(LEAD_AGENT, AgentName::as_str))
            .system_prompt(prompt)
            .model_settings(ModelSettings {
                // Thinking is on unless a run says otherwise, so asking a model for it that cannot is no mistake.
                thinking: options.thinking.unwrap_or(true) && supports_thinking,
                reasoning_effort: options.reasoning_effort.clone(),
                overrides: persona.agent.model_settings.as_ref().map(ModelOverrides::usable).unwrap_or_default(),
            })
            .patience(Patience { policy: spec.retry, breaker: Some(spec.breakers.of(&name)) })
            .tools(tools)
            .middlewares(middlewares)
            .build())
    }

    /// The tools of one agent: the configured ones of its groups, and those that its run calls for.
    fn tools(&self, options: &LeadOptions, persona: &Persona, sees: bool) -> ToolRegistry {
        let spec = &self.spec;
        let mut tools = spec.tools.clone();
        if let Some(wanted) = &persona.agent.tool_groups {
            tools.retain(|tool| spec.tool_groups.get(tool).is_none_or(|group| wanted.contains(group)));
        }
        if options.interactive {
            tools.add(erase(AskClarification));
        }
        if let Some(home) = spec.files.as_ref().filter(|_| sees) {
            tools.add(erase(ViewImage { home: home.clone() }));
        }
        if options.plan_mode {
            tools.add(erase(WriteTodos));
        }
        match &spec.custom {
            Some(agents) if options.bootstrap => tools.add(erase(SetupAgent { agents: agents.clone() })),
            Some(agents) if persona.name.is_some() && !options.from_forge => {
                let models = spec.models.facts().into_iter().map(|facts| facts.name).collect();
                tools.add(erase(UpdateAgent { agents: agents.clone(), models }));
            }
            _ => {}
        }
        tools
    }

    /// The middlewares of agents with this model and these tools.
    fn middlewares(&self, options: &LeadOptions, model: &str, tools: &ToolRegistry) -> Vec<Arc<dyn Middleware>> {
        let spec = &self.spec;
        let mut all: Vec<Arc<dyn Middleware>> = vec![
            Arc::new(ThreadDataMiddleware),
            Arc::new(DanglingToolCallMiddleware),
            Arc::new(LlmErrorMiddleware),
            Arc::new(ToolErrorMiddleware),
            Arc::new(ClarificationMiddleware),
        ];
        if let Some(files) = &spec.files {
            all.push(Arc::new(UploadsMiddleware::new(files.clone())));
            all.push(Arc::new(ViewImageMiddleware::new(files.clone())));
        }
        if options.plan_mode {
            all.push(Arc::new(TodoMiddleware));
        }
        if spec.summarization.enabled {
            let compactor = Compactor::new(&spec.summarization, spec.aside(), Some(model));
            all.push(Arc::new(SummarizationMiddleware::new(compactor)));
        }
        if spec.title.enabled {
            all.push(Arc::new(TitleMiddleware::with_models(&spec.title, spec.aside())));
        }
        if let Some((memories, rules)) = &spec.memory {
            all.push(Arc::new(MemoryMiddleware::new(memories.clone(), rules.clone())));
        }
        all.extend(spec.guards.middlewares(tools, spec.files.as_ref()));
        all.extend(spec.middlewares.iter().cloned());
        order::ordered(all)
    }
}

#[async_trait]
impl AgentSource for LeadAgents {
    fn description(&self) -> Option<&str> {
        Some("The agent that talks with the user, with tools, files and questions of its own.")
    }

    async fn agent(&self, options: &Map<String, Value>) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let read = LeadOptions::read(options);
        let persona = self.persona(options, read.bootstrap).await?;
        let key = (read.with_defaults_of(&persona.agent), persona.fingerprint());
        if let Some(agent) = self.built.lock().get(&key) {
            return Ok(agent.clone());
        }
        let agent = self.build(&key.0, &persona)?;
        let mut built = self.built.lock();
        if built.len() >= MOST_KEPT {
            built.clear();
        }
        Ok(built.entry(key).or_insert(agent).clone())
    }
}

#[cfg(test)]
#[path = "factory_tests.rs"]
mod tests;
