//! Builds one lead agent from its options: model, tools, system text and middlewares.

use std::sync::Arc;

use super::built::Built;
use super::factory::{AgentFactory, LEAD_AGENT};
use super::options::LeadOptions;
use super::persona::Persona;
use super::prompt::system_prompt;
use super::prompt_facts::{Delegation, PromptFacts};
use crate::agents::AgentBuilder;
use crate::agents::agent_loop::{ModelSettings, RetrySettings};
use crate::agents::agent_skills::AgentSkills;
use crate::agents::custom::{AgentName, ModelOverrides, SetupAgent, UpdateAgent};
use crate::agents::dynamic_tools::add_dynamic;
use crate::agents::guards::Guards;
use crate::agents::subagents::{SubagentPool, SubagentPoolSpec, TaskTool, build_pool, kinds};
use crate::agents::tool_restriction::ToolRestriction;
use crate::middlewares::summarization::Compactor;
use crate::middlewares::{
    ClarificationMiddleware, DanglingToolCallMiddleware, GoalMiddleware, LlmErrorMiddleware,
    MemoryMiddleware, Middleware, SkillsMiddleware, SummarizationMiddleware, TASK,
    ThreadDataMiddleware, TitleMiddleware, TodoMiddleware, ToolErrorMiddleware, UploadsMiddleware,
    ViewImageMiddleware, order,
};
use crate::runtime::agent::UnknownAssistant;
use crate::tools::builtins::{
    ASK_CLARIFICATION, AskClarification, DESCRIBE_SKILL, DescribeSkill, ListUploadedFiles,
    TOOL_SEARCH, VIEW_IMAGE, ViewImage, WriteTodos,
};
use crate::tools::{ToolRegistry, ToolSet, erase};

/// Tools that options add to the configured ones.
const OWN_TOOLS: [&str; 9] = [
    TASK,
    ASK_CLARIFICATION,
    DESCRIBE_SKILL,
    TOOL_SEARCH,
    VIEW_IMAGE,
    "list_uploaded_files",
    "write_todos",
    "setup_agent",
    "update_agent",
];

impl AgentFactory {
    pub(super) fn build(
        &self,
        options: &LeadOptions,
        persona: &Persona,
        skills: &AgentSkills,
        live: &ToolSet,
    ) -> Result<Built, UnknownAssistant> {
        let spec = &self.spec;
        let requested = options.model.as_deref();
        let requested = requested.filter(|name| !spec.forbidden_models.iter().any(|no| no == name));
        if let Some(name) = requested.filter(|name| spec.models.entry(name).is_none()) {
            return Err(UnknownAssistant::UnknownModel(name.to_owned()));
        }
        let custom_model = persona.agent.model.as_deref().filter(|name| {
            let is_configured = spec.models.entry(name).is_some();
            if !is_configured {
                tracing::warn!(model = %name, agent = ?persona.name, "an agent names a model that is not configured, using the default model");
            }
            is_configured
        });
        let model = spec
            .models
            .get_or_default(requested.or(custom_model))
            .map_err(|error| UnknownAssistant::Unusable {
                name: LEAD_AGENT.to_owned(),
                reason: error.to_string(),
            })?;
        let name = model.info().name.clone();
        let supports_thinking = spec
            .models
            .entry(&name)
            .is_some_and(|entry| entry.supports_thinking);
        let unknown_tools = self.unknown_tools(&options.tools, live);
        let guards = Guards {
            approval: options.tools.approval,
            ..spec.guards.clone()
        };
        let rule = &spec.guards.tool_rule;
        let shared = self.shared_tools(persona, &options.tools);
        let live = &live.filtered(|tool| options.tools.allows(tool, None) && rule.allows(tool));
        let pool = self.pool(options, &name, &shared, live, skills, &guards);
        let pool = pool.filter(|_| rule.allows(TASK));
        let delegation = pool
            .as_ref()
            .zip(options.tasks)
            .map(|(pool, limits)| Delegation {
                kinds: pool.kinds().collect(),
                at_once: limits.at_once,
                in_a_run: limits
                    .in_a_run
                    .unwrap_or(spec.guards.subagents.max_total_per_run),
            });
        let mut tools = self.tools(
            shared,
            pool.clone(),
            options,
            persona,
            skills,
            model.info().supports_vision,
        );
        tools.retain(|tool| options.tools.allows(tool, self.group_of(tool)));
        add_dynamic(&mut tools, live, &spec.tool_search, |_| true);
        tools.retain(|tool| rule.allows(tool));
        let skills_section = skills.section(spec.defers_skills);
        let facts = PromptFacts {
            name: persona
                .name
                .as_ref()
                .map_or(&*spec.display_name, AgentName::as_str),
            soul: &persona.agent.soul,
            profile: &persona.profile,
            makes_agent: tools.get("setup_agent").is_some(),
            can_change_itself: tools.get("update_agent").is_some(),
            can_ask: tools.get(ASK_CLARIFICATION).is_some(),
            skills: skills_section
                .as_deref()
                .filter(|_| tools.get("read_file").is_some()),
            has_files: spec.files.is_some(),
            plans: options.plan_mode,
            delegation,
            tools: tools.names().collect(),
            deferred: tools
                .deferred()
                .map(|deferred| deferred.names().collect())
                .unwrap_or_default(),
        };
        let prompt = system_prompt(&facts);
        let middlewares = self.middlewares(options, persona, skills, &name, &tools, &guards);
        let agent = AgentBuilder::new(model)
            .name(persona.name.as_ref().map_or(LEAD_AGENT, AgentName::as_str))
            .system_prompt(prompt)
            .model_settings(ModelSettings {
                // Thinking is on by default, so requesting it from a model without support is no
                // error.
                thinking: options.thinking.unwrap_or(true) && supports_thinking,
                reasoning_effort: options.reasoning_effort.clone(),
                overrides: persona
                    .agent
                    .model_settings
                    .as_ref()
                    .map(ModelOverrides::usable)
                    .unwrap_or_default(),
            })
            .retry_settings(RetrySettings {
                policy: spec.retry,
                breaker: Some(spec.breakers.of(&name)),
            })
            .tools(tools)
            .middlewares(middlewares)
            .build();
        Ok(Built {
            agent,
            subagents: pool,
            unknown_tools,
        })
    }

    /// Returns the names in a restriction that are neither tools nor groups.
    fn unknown_tools(&self, restriction: &ToolRestriction, live: &ToolSet) -> Vec<String> {
        let spec = &self.spec;
        let is_known = |name: &str| {
            OWN_TOOLS.contains(&name)
                || spec.tools.get(name).is_some()
                || spec.tool_groups.values().any(|group| group == name)
                || live.tools().iter().any(|tool| tool.schema().name == name)
        };
        let names = restriction.names().into_iter();
        let unknown = names.filter(|name| !is_known(name));
        unknown.map(str::to_owned).collect()
    }

    fn group_of(&self, tool: &str) -> Option<&str> {
        self.spec.tool_groups.get(tool).map(String::as_str)
    }

    /// Returns the tools that an agent shares with its subagents: the configured tools of its
    /// groups that the run allows.
    fn shared_tools(&self, persona: &Persona, restriction: &ToolRestriction) -> ToolRegistry {
        let mut tools = self.spec.tools.clone();
        tools.retain(|tool| restriction.allows(tool, self.group_of(tool)));
        tools.retain(|tool| self.spec.guards.tool_rule.allows(tool));
        if let Some(allowed) = &persona.agent.tool_groups {
            tools.retain(|tool| {
                self.spec
                    .tool_groups
                    .get(tool)
                    .is_none_or(|group| allowed.contains(group))
            });
        }
        tools
    }

    /// Builds the subagents of an agent with this model, if the run enables them.
    fn pool(
        &self,
        options: &LeadOptions,
        model: &str,
        tools: &ToolRegistry,
        live: &ToolSet,
        skills: &AgentSkills,
        guards: &Guards,
    ) -> Option<SubagentPool> {
        let spec = &self.spec;
        let config = &guards.subagents;
        options
            .tasks
            .filter(|_| config.enabled && !options.bootstrap)?;
        let pool = build_pool(
            kinds(config, spec.summarization.enabled),
            &SubagentPoolSpec {
                models: spec.auxiliary_models(),
                inherited: model,
                tools,
                live,
                tool_search: &spec.tool_search,
                files: spec.files.as_ref(),
                skills: spec.skills.as_ref().map(|all| (all, skills)),
                defers_skills: spec.defers_skills,
                guards,
                summarization: &spec.summarization,
                middlewares: &spec.middlewares,
                room: self.subagent_permits.clone(),
            },
        );
        Some(pool).filter(|pool| !pool.is_empty())
    }

    /// Adds the agent's own tools to the shared ones, as the run's options require.
    fn tools(
        &self,
        shared: ToolRegistry,
        pool: Option<SubagentPool>,
        options: &LeadOptions,
        persona: &Persona,
        skills: &AgentSkills,
        supports_vision: bool,
    ) -> ToolRegistry {
        let spec = &self.spec;
        let mut tools = shared;
        if let Some(pool) = pool {
            tools.add(erase(TaskTool::new(pool)));
        }
        if options.interactive {
            tools.add(erase(AskClarification));
        }
        if let Some(home) = &spec.files {
            tools.add(erase(ListUploadedFiles { home: home.clone() }));
        }
        if let Some(home) = spec.files.as_ref().filter(|_| supports_vision) {
            tools.add(erase(ViewImage { home: home.clone() }));
        }
        if options.plan_mode {
            tools.add(erase(WriteTodos));
        }
        if let Some(all) = spec
            .skills
            .as_ref()
            .filter(|_| spec.defers_skills && !skills.is_empty())
        {
            tools.add(erase(DescribeSkill {
                skills: all.clone(),
                choice: skills.choice().clone(),
            }));
        }
        match &spec.custom {
            Some(agents) if options.bootstrap => tools.add(erase(SetupAgent {
                agents: agents.clone(),
            })),
            // In a non-interactive run, prompt injection must not be able to change the agent
            // permanently.
            Some(agents)
                if persona.name.is_some() && options.interactive && !options.from_forge =>
            {
                let models = spec
                    .models
                    .facts()
                    .into_iter()
                    .map(|facts| facts.name)
                    .collect();
                tools.add(erase(UpdateAgent {
                    agents: agents.clone(),
                    models,
                }));
            }
            _ => {}
        }
        tools
    }

    /// Builds the middlewares of an agent with this model and these tools.
    fn middlewares(
        &self,
        options: &LeadOptions,
        persona: &Persona,
        skills: &AgentSkills,
        model: &str,
        tools: &ToolRegistry,
        guards: &Guards,
    ) -> Vec<Arc<dyn Middleware>> {
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
            if tools.get(VIEW_IMAGE).is_some() {
                all.push(Arc::new(ViewImageMiddleware::new(files.clone())));
            }
        }
        if options.plan_mode {
            all.push(Arc::new(TodoMiddleware));
        }
        if let Some(all_skills) = &spec.skills {
            all.push(Arc::new(SkillsMiddleware::new(
                all_skills.clone(),
                skills.choice().clone(),
            )));
        }
        if spec.summarization.enabled {
            let compactor =
                Compactor::new(&spec.summarization, spec.auxiliary_models(), Some(model));
            all.push(Arc::new(SummarizationMiddleware::new(compactor)));
        }
        if spec.title.enabled {
            all.push(Arc::new(TitleMiddleware::with_models(
                &spec.title,
                spec.auxiliary_models(),
            )));
        }
        all.push(Arc::new(GoalMiddleware::new(
            spec.auxiliary_models(),
            model,
        )));
        if let Some((memories, rules)) = &spec.memory {
            let agent = persona.name.as_ref().map(AgentName::to_string);
            all.push(Arc::new(
                MemoryMiddleware::new(memories.clone(), rules.clone()).of_agent(agent),
            ));
        }
        all.extend(guards.middlewares(tools, spec.files.as_ref()));
        all.extend(spec.middlewares.iter().cloned());
        order::ordered(all)
    }
}

#[cfg(test)]
#[path = "assembly_tests.rs"]
mod tests;
