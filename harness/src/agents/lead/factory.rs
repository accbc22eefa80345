//! Puts lead agents together: one per model and way of asking it, each built once and shared by its runs.

use std::sync::Arc;

use async_trait::async_trait;
use indexmap::IndexMap;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::options::{LeadOptions, agent_name};
use super::persona::Persona;
use super::prompt::{Delegation, PromptFacts, system_prompt};
use super::skills::AgentSkills;
use super::spec::LeadAgentSpec;
use crate::agents::AgentBuilder;
use crate::agents::agent_loop::{ModelSettings, Patience};
use crate::agents::catalog::AgentSource;
use crate::agents::custom::{
    AgentName, CustomAgent, CustomAgentError, ModelOverrides, SetupAgent, UpdateAgent,
};
use crate::middlewares::summarization::Compactor;
use crate::middlewares::{
    ClarificationMiddleware, DanglingToolCallMiddleware, GoalMiddleware, LlmErrorMiddleware,
    MemoryMiddleware, Middleware, SkillsMiddleware, SummarizationMiddleware, ThreadDataMiddleware,
    TitleMiddleware, TodoMiddleware, ToolErrorMiddleware, UploadsMiddleware, ViewImageMiddleware,
    order,
};
use crate::runtime::actor_context::effective_user_id;
use crate::runtime::agent::{Agent, UnknownAssistant};
use crate::subagents::{Crew, CrewSpec, TaskTool, crew_for, kinds};
use crate::tools::builtins::{
    ASK_CLARIFICATION, AskClarification, DescribeSkill, ListUploadedFiles, VIEW_IMAGE, ViewImage,
    WriteTodos,
};
use crate::tools::live::add_live;
use crate::tools::{ToolRegistry, ToolSet, erase};

/// The lead agent's name as an assistant.
pub const LEAD_AGENT: &str = "lead_agent";
/// Agents kept at most. Options are free text, so their combinations have no end.
const MOST_KEPT: usize = 64;

/// Agents by what they are built for, the one that was wanted last behind all others.
type Recent = IndexMap<BuildKey, Arc<dyn Agent>>;

/// What an agent is built for: options, a digest of what its user made of it and of its skills, and the version of the tools that
/// come and go.
type BuildKey = (LeadOptions, String, u64);

/// The lead agents of one configuration.
#[derive(Debug)]
pub struct LeadAgents {
    spec: LeadAgentSpec,
    /// How many subagents of all of them may be at work.
    room: Arc<Semaphore>,
    built: Mutex<Recent>,
}

impl LeadAgents {
    /// Agents of this make.
    pub fn new(spec: LeadAgentSpec) -> Self {
        let room = Arc::new(Semaphore::new(spec.guards.subagents.max_running.max(1)));
        Self {
            spec,
            room,
            built: Mutex::default(),
        }
    }

    /// Who the run is with: the custom agent that it names, or the agent without a name as its user wants it.
    async fn persona(
        &self,
        options: &Map<String, Value>,
        bootstrap: bool,
    ) -> Result<Persona, UnknownAssistant> {
        let name = agent_name(options).map_err(|error| UnknownAssistant::InvalidName(error.0))?;
        let Some(agents) = self.spec.custom.as_ref().filter(|_| !bootstrap) else {
            return Ok(Persona::default());
        };
        let user = effective_user_id();
        let unusable = |name: String| {
            move |error: CustomAgentError| UnknownAssistant::Unusable {
                name,
                reason: error.to_string(),
            }
        };
        let profile = agents
            .profile(&user)
            .await
            .map_err(unusable(LEAD_AGENT.to_owned()))?;
        let Some(name) = name else {
            let soul = agents
                .default_soul(&user)
                .await
                .map_err(unusable(LEAD_AGENT.to_owned()))?;
            return Ok(Persona {
                name: None,
                agent: CustomAgent {
                    soul,
                    ..CustomAgent::default()
                },
                profile,
            });
        };
        match agents
            .get(&user, &name)
            .await
            .map_err(unusable(name.to_string()))?
        {
            Some(agent) => Ok(Persona {
                name: Some(name),
                agent,
                profile,
            }),
            None => Err(UnknownAssistant::NotFound(name.to_string())),
        }
    }

    fn build(
        &self,
        options: &LeadOptions,
        persona: &Persona,
        skills: &AgentSkills,
        live: &ToolSet,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let spec = &self.spec;
        if let Some(name) = options
            .model
            .as_deref()
            .filter(|name| spec.models.entry(name).is_none())
        {
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
            .map_err(|error| UnknownAssistant::Unusable {
                name: LEAD_AGENT.to_owned(),
                reason: error.to_string(),
            })?;
        let name = model.info().name.clone();
        let supports_thinking = spec
            .models
            .entry(&name)
            .is_some_and(|entry| entry.supports_thinking);
        let shared = self.shared_tools(persona);
        let crew = self.crew(options, &name, &shared, live, skills);
        let delegation = crew
            .as_ref()
            .zip(options.tasks)
            .map(|(crew, limits)| Delegation {
                kinds: crew.kinds().collect(),
                at_once: limits.at_once,
                in_a_run: limits
                    .in_a_run
                    .unwrap_or(spec.guards.subagents.max_total_per_run),
            });
        let mut tools = self.tools(
            shared,
            crew.clone(),
            options,
            persona,
            skills,
            model.info().supports_vision,
        );
        add_live(&mut tools, live, &spec.tool_search, |_| true);
        let told = skills.section(spec.defers_skills);
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
            skills: told.as_deref().filter(|_| tools.get("read_file").is_some()),
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
        let middlewares = self.middlewares(options, persona, skills, &name, &tools);
        Ok(AgentBuilder::new(model)
            .name(persona.name.as_ref().map_or(LEAD_AGENT, AgentName::as_str))
            .system_prompt(prompt)
            .model_settings(ModelSettings {
                // Thinking is on unless a run says otherwise, so asking a model for it that cannot is no mistake.
                thinking: options.thinking.unwrap_or(true) && supports_thinking,
                reasoning_effort: options.reasoning_effort.clone(),
                overrides: persona
                    .agent
                    .model_settings
                    .as_ref()
                    .map(ModelOverrides::usable)
                    .unwrap_or_default(),
            })
            .patience(Patience {
                policy: spec.retry,
                breaker: Some(spec.breakers.of(&name)),
            })
            .tools(tools)
            .middlewares(middlewares)
            .build())
    }

    /// The tools that an agent shares with those that it sets to work: the configured ones of its groups.
    fn shared_tools(&self, persona: &Persona) -> ToolRegistry {
        let mut tools = self.spec.tools.clone();
        if let Some(wanted) = &persona.agent.tool_groups {
            tools.retain(|tool| {
                self.spec
                    .tool_groups
                    .get(tool)
                    .is_none_or(|group| wanted.contains(group))
            });
        }
        tools
    }

    /// Whom an agent with this model may set to work, if its run wants that.
    fn crew(
        &self,
        options: &LeadOptions,
        model: &str,
        tools: &ToolRegistry,
        live: &ToolSet,
        skills: &AgentSkills,
    ) -> Option<Crew> {
        let spec = &self.spec;
        let config = &spec.guards.subagents;
        options
            .tasks
            .filter(|_| config.enabled && !options.bootstrap)?;
        let crew = crew_for(
            kinds(config, spec.summarization.enabled),
            &CrewSpec {
                models: spec.aside(),
                inherited: model,
                tools,
                live,
                tool_search: &spec.tool_search,
                files: spec.files.as_ref(),
                skills: spec.skills.as_ref().map(|all| (all, skills)),
                defers_skills: spec.defers_skills,
                guards: &spec.guards,
                summarization: &spec.summarization,
                middlewares: &spec.middlewares,
                room: self.room.clone(),
            },
        );
        Some(crew).filter(|crew| !crew.is_empty())
    }

    /// All tools of one agent: those that it shares, and those that its run calls for.
    fn tools(
        &self,
        shared: ToolRegistry,
        crew: Option<Crew>,
        options: &LeadOptions,
        persona: &Persona,
        skills: &AgentSkills,
        sees: bool,
    ) -> ToolRegistry {
        let spec = &self.spec;
        let mut tools = shared;
        if let Some(crew) = crew {
            tools.add(erase(TaskTool::new(crew)));
        }
        if options.interactive {
            tools.add(erase(AskClarification));
        }
        if let Some(home) = &spec.files {
            tools.add(erase(ListUploadedFiles { home: home.clone() }));
        }
        if let Some(home) = spec.files.as_ref().filter(|_| sees) {
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
            // Where nobody reads along, a page that is read must not change for good who the agent is.
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

    /// The middlewares of agents with this model and these tools.
    fn middlewares(
        &self,
        options: &LeadOptions,
        persona: &Persona,
        skills: &AgentSkills,
        model: &str,
        tools: &ToolRegistry,
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
            let compactor = Compactor::new(&spec.summarization, spec.aside(), Some(model));
            all.push(Arc::new(SummarizationMiddleware::new(compactor)));
        }
        if spec.title.enabled {
            all.push(Arc::new(TitleMiddleware::with_models(
                &spec.title,
                spec.aside(),
            )));
        }
        all.push(Arc::new(GoalMiddleware::new(spec.aside(), model)));
        if let Some((memories, rules)) = &spec.memory {
            let agent = persona.name.as_ref().map(AgentName::to_string);
            all.push(Arc::new(
                MemoryMiddleware::new(memories.clone(), rules.clone()).of_agent(agent),
            ));
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

    async fn agent(
        &self,
        options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let read = LeadOptions::read(options);
        let persona = self.persona(options, read.bootstrap).await?;
        let skills = AgentSkills::of(&self.spec, &read, &persona).await;
        let live = match &self.spec.live_tools {
            Some(source) => source.tools().await,
            None => Arc::default(),
        };
        let made = persona.fingerprint(&skills.section(false).unwrap_or_default());
        let key = (read.with_defaults_of(&persona.agent), made, live.version());
        if let Some(agent) = wanted_again(&mut self.built.lock(), &key) {
            return Ok(agent);
        }
        let agent = self.build(&key.0, &persona, &skills, &live)?;
        let mut built = self.built.lock();
        // No run asks for tools of another version any more.
        built.retain(|(_, _, version), _| *version == live.version());
        if let Some(twin) = wanted_again(&mut built, &key) {
            return Ok(twin);
        }
        if built.len() >= MOST_KEPT {
            built.shift_remove_index(0);
        }
        built.insert(key, agent.clone());
        Ok(agent)
    }

    fn forget(&self) {
        self.built.lock().clear();
    }
}

/// The agent of this key, which is the last to go from now on.
fn wanted_again(built: &mut Recent, key: &BuildKey) -> Option<Arc<dyn Agent>> {
    let at = built.get_index_of(key)?;
    built.move_index(at, built.len() - 1);
    built.get(key).cloned()
}

#[cfg(test)]
#[path = "factory_tests.rs"]
mod tests;
