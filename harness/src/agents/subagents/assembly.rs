//! Builds the subagents of a lead agent, each with its own model, tools and middlewares.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::configured_kinds::BASH;
use super::kind::SubagentKind;
use super::pool::{Subagent, SubagentPool};
use super::{prompt, task};
use crate::agents::AgentBuilder;
use crate::agents::agent_loop::{ModelSettings, RetrySettings};
use crate::agents::agent_skills::AgentSkills;
use crate::agents::dynamic_tools::{add_dynamic, deferred_section};
use crate::agents::guards::Guards;
use crate::config::{SummarizationConfig, ToolSearchConfig};
use crate::middlewares::summarization::Compactor;
use crate::middlewares::{
    DanglingToolCallMiddleware, LlmErrorMiddleware, Middleware, SkillsMiddleware,
    SummarizationMiddleware, ThreadDataMiddleware, ToolErrorMiddleware, ViewImageMiddleware, order,
};
use crate::models::{AuxiliaryModels, ChatModel};
use crate::sandbox::FileHome;
use crate::skills::Skills;
use crate::tools::builtins::{DESCRIBE_SKILL, DescribeSkill, ViewImage};
use crate::tools::{ToolRegistry, ToolSet, erase};

/// Settings and dependencies that all subagents of a pool share.
#[derive(Debug)]
pub struct SubagentPoolSpec<'a> {
    /// Models with their circuit breakers and retry policy.
    pub models: AuxiliaryModels,
    /// Model entry of the lead agent.
    pub inherited: &'a str,
    /// Tools that the lead agent shares with its subagents.
    pub tools: &'a ToolRegistry,
    /// Dynamic tools.
    pub live: &'a ToolSet,
    /// Settings of deferred tools.
    pub tool_search: &'a ToolSearchConfig,
    /// Files of threads, if available.
    pub files: Option<&'a FileHome>,
    /// Skills of the user and the skills of the lead agent, if available.
    pub skills: Option<(&'a Skills, &'a AgentSkills)>,
    /// `true` if the prompt contains only the names of skills.
    pub defers_skills: bool,
    /// Configuration of the lead agent's guard middlewares.
    pub guards: &'a Guards,
    /// Settings for shortening conversations.
    pub summarization: &'a SummarizationConfig,
    /// Additional middlewares.
    pub middlewares: &'a [Arc<dyn Middleware>],
    /// Permits for concurrently active subagents.
    pub room: Arc<Semaphore>,
}

/// Builds a pool of these kinds. Omits kinds whose tools or models are not available.
pub fn build_pool(
    kinds: impl IntoIterator<Item = SubagentKind>,
    spec: &SubagentPoolSpec<'_>,
) -> SubagentPool {
    let usable = |kind: &SubagentKind| kind.name != BASH || spec.tools.get("bash").is_some();
    SubagentPool::new(
        kinds
            .into_iter()
            .filter(usable)
            .filter_map(|kind| spec.subagent(kind)),
        spec.room.clone(),
    )
}

impl SubagentPoolSpec<'_> {
    fn subagent(&self, kind: SubagentKind) -> Option<Subagent> {
        let model = self.model(&kind)?;
        let name = model.info().name.clone();
        let skills = self.skills_of(&kind);
        let tools = self.tools_of(&kind, skills.as_ref(), model.info().supports_vision);
        let reported = skills.as_ref().filter(|_| tools.get("read_file").is_some());
        let reported =
            reported.and_then(|(_, own)| own.section(tools.get(DESCRIBE_SKILL).is_some()));
        let AuxiliaryModels {
            breakers, retry, ..
        } = &self.models;
        let own = prompt::system_prompt(&kind, reported.as_deref(), self.files.is_some());
        let deferred = tools
            .deferred()
            .map(|deferred| deferred_section(&deferred.names().collect::<Vec<_>>()));
        let agent = AgentBuilder::new(model)
            .name(&kind.name)
            .caller(task::caller(&kind.name))
            .system_prompt(
                [own]
                    .into_iter()
                    .chain(deferred)
                    .collect::<Vec<_>>()
                    .join("\n\n"),
            )
            .model_settings(ModelSettings::default())
            .retry_settings(RetrySettings {
                policy: *retry,
                breaker: Some(breakers.of(&name)),
            })
            .middlewares(self.middlewares_of(&kind, skills, &name, &tools))
            .tools(tools)
            .build();
        Some(Subagent {
            kind,
            agent,
            model: name,
        })
    }

    /// Returns the kind's own model if it is configured, otherwise the model of the lead agent.
    fn model(&self, kind: &SubagentKind) -> Option<Arc<dyn ChatModel>> {
        let catalog = &self.models.catalog;
        let own = kind.model.as_deref().filter(|name| {
            let is_configured = catalog.entry(name).is_some();
            if !is_configured {
                tracing::warn!(model = %name, subagent = %kind.name, "a subagent names a model that is not configured, using the model of its lead agent");
            }
            is_configured
        });
        let model = catalog.get(own.unwrap_or(self.inherited));
        model.inspect_err(|error| tracing::error!(%error, subagent = %kind.name, "cannot create the model of a subagent, omitting the subagent")).ok()
    }

    /// Returns the skills of the lead agent that the kind may use.
    fn skills_of(&self, kind: &SubagentKind) -> Option<(Skills, AgentSkills)> {
        self.skills
            .map(|(all, lead_skills)| (all.clone(), lead_skills.among(kind.skills.as_deref())))
    }

    fn tools_of(
        &self,
        kind: &SubagentKind,
        skills: Option<&(Skills, AgentSkills)>,
        supports_vision: bool,
    ) -> ToolRegistry {
        let mut tools = self.tools.clone();
        if let Some((skills, own)) = skills.filter(|(_, own)| self.defers_skills && !own.is_empty())
        {
            tools.add(erase(DescribeSkill {
                skills: skills.clone(),
                choice: own.choice().clone(),
            }));
        }
        if let Some(home) = self.files.filter(|_| supports_vision) {
            tools.add(erase(ViewImage { home: home.clone() }));
        }
        tools.retain(|tool| kind.may_use(tool));
        add_dynamic(&mut tools, self.live, self.tool_search, |tool| {
            kind.may_use(tool)
        });
        tools.retain(|tool| self.guards.tool_rule.allows(tool));
        tools
    }

    fn middlewares_of(
        &self,
        kind: &SubagentKind,
        skills: Option<(Skills, AgentSkills)>,
        model: &str,
        tools: &ToolRegistry,
    ) -> Vec<Arc<dyn Middleware>> {
        let mut all: Vec<Arc<dyn Middleware>> = vec![
            Arc::new(ThreadDataMiddleware),
            Arc::new(DanglingToolCallMiddleware),
            Arc::new(LlmErrorMiddleware),
            Arc::new(ToolErrorMiddleware),
        ];
        if let Some(files) = self.files {
            all.push(Arc::new(ViewImageMiddleware::new(files.clone())));
        }
        if let Some((skills, own)) = skills {
            all.push(Arc::new(SkillsMiddleware::new(
                skills,
                own.choice().clone(),
            )));
        }
        if self.summarization.enabled {
            let compactor = Compactor::new(self.summarization, self.models.clone(), Some(model));
            all.push(Arc::new(SummarizationMiddleware::new(compactor)));
        }
        all.extend(
            self.guards
                .for_subagent(&kind.budget)
                .middlewares(tools, self.files),
        );
        all.extend(self.middlewares.iter().cloned());
        order::ordered(all)
    }
}
