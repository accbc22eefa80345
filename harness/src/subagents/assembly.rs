//! Puts the crew of a lead agent together: each member with a model, tools and middlewares of its own.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::crew::{Crew, Member};
use super::kind::{BASH, SubagentKind};
use super::{prompt, task};
use crate::agents::AgentBuilder;
use crate::agents::agent_loop::{ModelSettings, Patience};
use crate::agents::lead::{AgentSkills, Guards, deferred_tools};
use crate::config::{SummarizationConfig, ToolSearchConfig};
use crate::middlewares::summarization::Compactor;
use crate::middlewares::{
    DanglingToolCallMiddleware, LlmErrorMiddleware, Middleware, SkillsMiddleware,
    SummarizationMiddleware, ThreadDataMiddleware, ToolErrorMiddleware, ViewImageMiddleware, order,
};
use crate::models::{AsideModels, ChatModel};
use crate::sandbox::FileHome;
use crate::skills::Skills;
use crate::tools::builtins::{DESCRIBE_SKILL, DescribeSkill, ViewImage};
use crate::tools::live::add_live;
use crate::tools::{ToolRegistry, ToolSet, erase};

/// What the members of a crew have in common.
#[derive(Debug)]
pub struct CrewSpec<'a> {
    /// The models, their circuits and retries.
    pub models: AsideModels,
    /// The entry of the lead agent's model.
    pub inherited: &'a str,
    /// The tools of the lead agent that are not its own alone.
    pub tools: &'a ToolRegistry,
    /// Tools that come and go.
    pub live: &'a ToolSet,
    /// How those are shown.
    pub tool_search: &'a ToolSearchConfig,
    /// The threads' files, when there are any.
    pub files: Option<&'a FileHome>,
    /// Users' skills, when there are any, and those of the lead agent.
    pub skills: Option<(&'a Skills, &'a AgentSkills)>,
    /// Whether an agent is told the names of its skills alone.
    pub defers_skills: bool,
    /// What watches over the lead agent.
    pub guards: &'a Guards,
    /// How conversations are shortened.
    pub summarization: &'a SummarizationConfig,
    /// Further middlewares.
    pub middlewares: &'a [Arc<dyn Middleware>],
    /// How many subagents may be at work.
    pub room: Arc<Semaphore>,
}

/// The crew of these kinds. Kinds that cannot work here are left out.
pub fn crew_for(kinds: impl IntoIterator<Item = SubagentKind>, spec: &CrewSpec<'_>) -> Crew {
    let usable = |kind: &SubagentKind| kind.name != BASH || spec.tools.get("bash").is_some();
    Crew::new(
        kinds
            .into_iter()
            .filter(usable)
            .filter_map(|kind| spec.member(kind)),
        spec.room.clone(),
    )
}

impl CrewSpec<'_> {
    fn member(&self, kind: SubagentKind) -> Option<Member> {
        let model = self.model(&kind)?;
        let name = model.info().name.clone();
        let skills = self.skills_of(&kind);
        let tools = self.tools_of(&kind, skills.as_ref(), model.info().supports_vision);
        let told = skills.as_ref().filter(|_| tools.get("read_file").is_some());
        let told = told.and_then(|(_, own)| own.section(tools.get(DESCRIBE_SKILL).is_some()));
        let AsideModels {
            breakers, retry, ..
        } = &self.models;
        let own = prompt::system_prompt(&kind, told.as_deref(), self.files.is_some());
        let deferred = tools
            .deferred()
            .map(|deferred| deferred_tools(&deferred.names().collect::<Vec<_>>()));
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
            .patience(Patience {
                policy: *retry,
                breaker: Some(breakers.of(&name)),
            })
            .middlewares(self.middlewares_of(&kind, skills, &name, &tools))
            .tools(tools)
            .build();
        Some(Member {
            kind,
            agent,
            model: name,
        })
    }

    /// The kind's own model, or the lead agent's where it has none that is configured.
    fn model(&self, kind: &SubagentKind) -> Option<Arc<dyn ChatModel>> {
        let catalog = &self.models.catalog;
        let own = kind.model.as_deref().filter(|name| {
            let known = catalog.entry(name).is_some();
            if !known {
                tracing::warn!(model = %name, subagent = %kind.name, "a subagent names a model that is not configured; it inherits");
            }
            known
        });
        let model = catalog.get(own.unwrap_or(self.inherited));
        model.inspect_err(|error| tracing::error!(%error, subagent = %kind.name, "a subagent has no model; it is left out")).ok()
    }

    /// Of the lead agent's skills those that the kind may use.
    fn skills_of(&self, kind: &SubagentKind) -> Option<(Skills, AgentSkills)> {
        self.skills
            .map(|(all, leads)| (all.clone(), leads.among(kind.skills.as_deref())))
    }

    fn tools_of(
        &self,
        kind: &SubagentKind,
        skills: Option<&(Skills, AgentSkills)>,
        sees: bool,
    ) -> ToolRegistry {
        let mut tools = self.tools.clone();
        if let Some((skills, own)) = skills.filter(|(_, own)| self.defers_skills && !own.is_empty())
        {
            tools.add(erase(DescribeSkill {
                skills: skills.clone(),
                choice: own.choice().clone(),
            }));
        }
        if let Some(home) = self.files.filter(|_| sees) {
            tools.add(erase(ViewImage { home: home.clone() }));
        }
        tools.retain(|tool| kind.may_use(tool));
        add_live(&mut tools, self.live, self.tool_search, |tool| {
            kind.may_use(tool)
        });
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
                .of_subagent(&kind.budget)
                .middlewares(tools, self.files),
        );
        all.extend(self.middlewares.iter().cloned());
        order::ordered(all)
    }
}
