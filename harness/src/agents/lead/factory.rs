//! Puts lead agents together: one per model and way of asking it, each built once and shared by its runs.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::options::LeadOptions;
use super::prompt::{PromptFacts, system_prompt};
use crate::agents::AgentBuilder;
use crate::agents::agent_loop::{ModelSettings, Patience};
use crate::agents::catalog::AgentSource;
use crate::config::{SummarizationConfig, TitleConfig};
use crate::memory::{Memories, MemoryRules};
use crate::middlewares::summarization::Compactor;
use crate::middlewares::{
    ClarificationMiddleware, DanglingToolCallMiddleware, LlmErrorMiddleware, MemoryMiddleware, Middleware, SummarizationMiddleware,
    ThreadDataMiddleware, TitleMiddleware, ToolErrorMiddleware, UploadsMiddleware, order,
};
use crate::models::{AsideModels, Breakers, ModelCatalog, RetryPolicy};
use crate::runtime::agent::{Agent, UnknownAssistant};
use crate::sandbox::FileHome;
use crate::tools::builtins::{ASK_CLARIFICATION, AskClarification};
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
    /// The threads' files, when there are any.
    pub files: Option<FileHome>,
    /// How conversations are named.
    pub title: TitleConfig,
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
            files: None,
            title: TitleConfig::default(),
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
    built: Mutex<HashMap<LeadOptions, Arc<dyn Agent>>>,
}

impl LeadAgents {
    /// Agents of this make.
    pub fn new(spec: LeadAgentSpec) -> Self {
        Self { spec, built: Mutex::default() }
    }

    fn build(&self, options: &LeadOptions) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let spec = &self.spec;
        if let Some(name) = options.model.as_deref().filter(|name| spec.models.entry(name).is_none()) {
            return Err(UnknownAssistant::UnknownModel(name.to_owned()));
        }
        let model = spec
            .models
            .get_or_default(options.model.as_deref())
            .map_err(|error| UnknownAssistant::Unusable { name: LEAD_AGENT.to_owned(), reason: error.to_string() })?;
        let name = model.info().name.clone();
        let supports_thinking = spec.models.entry(&name).is_some_and(|entry| entry.supports_thinking);
        let mut tools = spec.tools.clone();
        if options.interactive {
            tools.add(erase(AskClarification));
        }
        let facts = PromptFacts {
            name: &spec.display_name,
            can_ask: tools.get(ASK_CLARIFICATION).is_some(),
            has_files: spec.files.is_some(),
            tools: tools.names().collect(),
        };
        let prompt = system_prompt(&facts);
        Ok(AgentBuilder::new(model)
            .name(LEAD_AGENT)
            .system_prompt(prompt)
            .model_settings(ModelSettings {
                // Thinking is on unless a run says otherwise, so asking a model for it that cannot is no mistake.
                thinking: options.thinking && supports_thinking,
                reasoning_effort: options.reasoning_effort.clone(),
                overrides: Map::new(),
            })
            .patience(Patience { policy: spec.retry, breaker: Some(spec.breakers.of(&name)) })
            .tools(tools)
            .middlewares(self.middlewares(&name))
            .build())
    }

    /// The middlewares of agents with this model.
    fn middlewares(&self, model: &str) -> Vec<Arc<dyn Middleware>> {
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
        all.extend(spec.middlewares.iter().cloned());
        order::ordered(all)
    }
}

impl AgentSource for LeadAgents {
    fn description(&self) -> Option<&str> {
        Some("The agent that talks with the user, with tools, files and questions of its own.")
    }

    fn agent(&self, options: &Map<String, Value>) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let options = LeadOptions::read(options);
        if let Some(agent) = self.built.lock().get(&options) {
            return Ok(agent.clone());
        }
        let agent = self.build(&options)?;
        let mut built = self.built.lock();
        if built.len() >= MOST_KEPT {
            built.clear();
        }
        Ok(built.entry(options).or_insert(agent).clone())
    }
}

#[cfg(test)]
#[path = "factory_tests.rs"]
mod tests;
