//! What lead agents are made of.

use std::collections::HashMap;
use std::sync::Arc;

use super::guards::Guards;
use crate::agents::custom::CustomAgents;
use crate::config::{SummarizationConfig, TitleConfig, ToolSearchConfig};
use crate::memory::{Memories, MemoryRules};
use crate::middlewares::Middleware;
use crate::models::{AsideModels, Breakers, ModelCatalog, RetryPolicy};
use crate::sandbox::FileHome;
use crate::skills::{SkillChoice, Skills};
use crate::tools::{ToolRegistry, ToolSource};

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
    /// Tools that come and go, such as those of MCP servers. They never take the place of another.
    pub live_tools: Option<Arc<dyn ToolSource>>,
    /// Whether models look for tools that come and go before they see them.
    pub tool_search: ToolSearchConfig,
    /// Where agents that users make are kept, when there is such a place.
    pub custom: Option<Arc<dyn CustomAgents>>,
    /// The threads' files, when there are any.
    pub files: Option<FileHome>,
    /// Users' skills, when there are any.
    pub skills: Option<Skills>,
    /// Which of them its agents may have, unless a custom agent names its own among these.
    pub skill_choice: SkillChoice,
    /// Whether an agent is told the names of its skills alone, and looks the rest up.
    pub defers_skills: bool,
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

    /// The same models, to be asked by the framework itself.
    pub(super) fn aside(&self) -> AsideModels {
        AsideModels {
            catalog: self.models.clone(),
            breakers: self.breakers.clone(),
            retry: self.retry,
        }
    }
}
