//! Specification of lead agents.

use std::collections::HashMap;
use std::sync::Arc;

use crate::agents::custom::CustomAgents;
use crate::agents::guards::Guards;
use crate::config::{SummarizationConfig, TitleConfig, ToolSearchConfig};
use crate::middlewares::Middleware;
use crate::models::{AuxiliaryModels, Breakers, ModelCatalog, RetryPolicy};
use crate::sandbox::FileHome;
use crate::skills::{SkillChoice, Skills};
use crate::tools::{ToolRegistry, ToolSource};
use crate::user_memory::{MemoryRules, UserMemories};

/// Settings and dependencies of lead agents.
#[derive(Debug, Clone)]
pub struct LeadAgentSpec {
    /// Display name of the agent.
    pub display_name: String,
    /// Model catalog; the first entry is the default.
    pub models: Arc<ModelCatalog>,
    /// Configured models that the agents may not use: a run that names one gets the default.
    pub forbidden_models: Vec<String>,
    /// Retry policy of model calls.
    pub retry: RetryPolicy,
    /// Circuit breakers of the models.
    pub breakers: Arc<Breakers>,
    /// Tools, except `ask_clarification`.
    pub tools: ToolRegistry,
    /// Group of each configured tool.
    pub tool_groups: HashMap<String, String>,
    /// Dynamic tools, such as those of MCP servers. They never replace another tool.
    pub live_tools: Option<Arc<dyn ToolSource>>,
    /// Settings of deferred tools, which a model must search for before it can call them.
    pub tool_search: ToolSearchConfig,
    /// Store of custom agents, if available.
    pub custom: Option<Arc<dyn CustomAgents>>,
    /// Files of threads, if available.
    pub files: Option<FileHome>,
    /// Skills of users, if available.
    pub skills: Option<Skills>,
    /// Skills that agents may use; a custom agent may restrict them further.
    pub skill_choice: SkillChoice,
    /// `true` if the prompt contains only the names of skills, and the agent requests their
    /// descriptions with `describe_skill`.
    pub defers_skills: bool,
    /// Settings of conversation titles.
    pub title: TitleConfig,
    /// Configuration of the guard middlewares.
    pub guards: Guards,
    /// Settings for shortening conversations that exceed the model's context.
    pub summarization: SummarizationConfig,
    /// User memories and their rules, if enabled.
    pub memory: Option<(UserMemories, MemoryRules)>,
    /// Additional middlewares; their names determine their positions.
    pub middlewares: Vec<Arc<dyn Middleware>>,
}

impl LeadAgentSpec {
    /// Creates a specification with these models and no tools.
    pub fn new(models: Arc<ModelCatalog>) -> Self {
        Self {
            display_name: "DeerFlow".to_owned(),
            models,
            forbidden_models: Vec::new(),
            retry: RetryPolicy::default(),
            breakers: Arc::default(),
            tools: ToolRegistry::new(),
            tool_groups: HashMap::new(),
            live_tools: None,
            tool_search: ToolSearchConfig::default(),
            custom: None,
            files: None,
            skills: None,
            skill_choice: SkillChoice::All,
            defers_skills: false,
            title: TitleConfig::default(),
            guards: Guards::default(),
            summarization: SummarizationConfig::default(),
            memory: None,
            middlewares: Vec::new(),
        }
    }

    /// Returns the same models for auxiliary calls of the framework.
    pub(super) fn auxiliary_models(&self) -> AuxiliaryModels {
        AuxiliaryModels {
            catalog: self.models.clone(),
            breakers: self.breakers.clone(),
            retry: self.retry,
        }
    }
}
