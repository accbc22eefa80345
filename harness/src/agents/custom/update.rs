//! Tools that create and update custom agents.

use std::sync::Arc;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{change, change_default_soul};
use super::port::{AgentName, CustomAgent, CustomAgentError, CustomAgents};
use crate::state::StateUpdate;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Run option with the agent's name.
pub(crate) const AGENT_NAME: &str = "agent_name";
/// State channel in which clients read the name of the created agent.
const CREATED_AGENT_NAME: &str = "created_agent_name";
/// Values that models send instead of omitting an argument.
const ABSENT: [&str; 3] = ["null", "none", "undefined"];

/// `setup_agent`: stores an agent that the user has described.
#[derive(Debug, Clone)]
pub struct SetupAgent {
    /// Store of custom agents.
    pub agents: Arc<dyn CustomAgents>,
}

/// Arguments of `setup_agent`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SetupAgentArgs {
    /// Who the agent is, in Markdown: its character, its field, how it works and what it never does.
    pub soul: String,
    /// One line about it, for lists.
    pub description: String,
    /// The skills it knows; leave out for all.
    #[serde(default)]
    pub skills: Option<Vec<String>>,
}

impl Tool for SetupAgent {
    type Args = SetupAgentArgs;

    fn name(&self) -> &str {
        "setup_agent"
    }

    fn description(&self) -> &str {
        "Save the agent that you have worked out with the user. Call it once, when the user agrees with who the agent shall be."
    }

    fn effect(&self, _args: &SetupAgentArgs) -> Effect {
        Effect::Keyed
    }

    async fn call(&self, args: SetupAgentArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if args.soul.trim().is_empty() {
            return Err(ToolError::for_model(
                "Error: the soul is empty; write down who the agent is.",
            ));
        }
        let user = &ctx.run.actor.user_id;
        let Some(name) = agent_name_of(ctx) else {
            change_default_soul(&*self.agents, user, &args.soul).await?;
            return Ok(
                "The soul of the assistant is saved; it counts from the next message on.".into(),
            );
        };
        let name = AgentName::parse(name).map_err(for_model)?;
        let refused = || {
            for_model(format_args!(
                "no agent can be called {name}; ask the user for another name."
            ))
        };
        if name.is_reserved() {
            return Err(refused());
        }
        let apply_description = |existing: Option<CustomAgent>| {
            if existing.is_none() && name.is_flow_name() {
                return Err(refused());
            }
            let existing = existing.filter(|agent| !agent.shared).unwrap_or_default();
            let skills = args.skills.clone().or(existing.skills.clone());
            Ok::<_, ToolError>(Some(CustomAgent {
                soul: args.soul.clone(),
                description: args.description.clone(),
                skills,
                ..existing
            }))
        };
        change(&*self.agents, user, &name, apply_description).await?;
        let update = StateUpdate::channel(CREATED_AGENT_NAME, name.as_str().into());
        Ok(ToolOutput {
            update,
            ..format!("The agent {name} is saved.").into()
        })
    }
}

/// `update_agent`: lets an agent change its own definition at the user's request.
#[derive(Debug, Clone)]
pub struct UpdateAgent {
    /// Store of custom agents.
    pub agents: Arc<dyn CustomAgents>,
    /// Configured model entries.
    pub models: Arc<[String]>,
}

/// Arguments of `update_agent`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UpdateAgentArgs {
    /// The whole new soul.
    pub soul: Option<String>,
    /// The new line about the agent.
    pub description: Option<String>,
    /// All skills it shall know.
    pub skills: Option<Vec<String>>,
    /// All groups of tools it shall have.
    pub tool_groups: Option<Vec<String>>,
    /// The model entry it shall ask.
    pub model: Option<String>,
}

impl Tool for UpdateAgent {
    type Args = UpdateAgentArgs;

    fn name(&self) -> &str {
        "update_agent"
    }

    fn description(&self) -> &str {
        "Change who you are, when the user asks for it: soul, description, skills, tool groups or model. What you give replaces the \
         old value whole; leave out what shall stay. The change counts from the next message on."
    }

    fn effect(&self, _args: &UpdateAgentArgs) -> Effect {
        Effect::Keyed
    }

    async fn call(
        &self,
        args: UpdateAgentArgs,
        ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let user = &ctx.run.actor.user_id;
        let name = AgentName::parse(agent_name_of(ctx).unwrap_or_default()).map_err(for_model)?;
        let changed_fields = Mutex::default();
        change(&*self.agents, user, &name, |existing| {
            let Some(existing) = existing.filter(|agent| !agent.shared) else {
                return Err(ToolError::for_model(format!(
                    "Error: {name} is not an agent of this user and cannot be changed."
                )));
            };
            let (agent, changed) = changed(existing, &args, &self.models)?;
            *changed_fields.lock() = changed;
            Ok(Some(agent))
        })
        .await?;
        let changed_fields = changed_fields.into_inner();
        if changed_fields.is_empty() {
            return Ok("Nothing was to be changed.".into());
        }
        Ok(format!(
            "Changed: {}. It counts from the next message on.",
            changed_fields.join(", ")
        )
        .into())
    }
}

/// Returns the agent name in the run's options.
fn agent_name_of(ctx: &ToolContext) -> Option<&str> {
    ctx.run
        .option_str(AGENT_NAME)
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

/// Applies the arguments and returns the agent with the names of the changed fields.
fn changed(
    mut agent: CustomAgent,
    args: &UpdateAgentArgs,
    models: &[String],
) -> Result<(CustomAgent, Vec<&'static str>), ToolError> {
    let present = |text: &Option<String>| {
        text.clone()
            .filter(|text| !ABSENT.contains(&text.trim().to_ascii_lowercase().as_str()))
    };
    let mut changed = Vec::new();
    if let Some(soul) = present(&args.soul).filter(|soul| *soul != agent.soul) {
        if soul.trim().is_empty() {
            return Err(ToolError::for_model(
                "Error: the soul cannot be empty; leave it out to keep it.",
            ));
        }
        agent.soul = soul;
        changed.push("soul");
    }
    if let Some(model) = present(&args.model).filter(|model| agent.model.as_ref() != Some(model)) {
        if !models.contains(&model) {
            return Err(ToolError::for_model(format!(
                "Error: there is no model {model:?}; the models are: {}.",
                models.join(", ")
            )));
        }
        agent.model = Some(model);
        changed.push("model");
    }
    if let Some(description) =
        present(&args.description).filter(|description| *description != agent.description)
    {
        agent.description = description;
        changed.push("description");
    }
    for (key, new, current) in [
        ("skills", &args.skills, &mut agent.skills),
        ("tool_groups", &args.tool_groups, &mut agent.tool_groups),
    ] {
        if new.is_some() && new != current {
            current.clone_from(new);
            changed.push(key);
        }
    }
    Ok((agent, changed))
}

fn for_model(error: impl std::fmt::Display) -> ToolError {
    ToolError::for_model(format!("Error: {error}"))
}

impl From<CustomAgentError> for ToolError {
    fn from(error: CustomAgentError) -> Self {
        for_model(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_replaces_only_the_given_fields() {
        let agent = || CustomAgent {
            soul: "calm".to_owned(),
            description: "d".to_owned(),
            ..CustomAgent::default()
        };
        let models = ["big".to_owned()];
        let text = |text: &str| Some(text.to_owned());
        let output = UpdateAgentArgs {
            soul: text("wild"),
            description: text("None"),
            model: text("big"),
            ..UpdateAgentArgs::default()
        };
        let (new, what) = changed(agent(), &output, &models).unwrap();
        assert_eq!(
            (
                new.soul.as_str(),
                new.description.as_str(),
                new.model.as_deref()
            ),
            ("wild", "d", Some("big"))
        );
        assert_eq!(what, ["soul", "model"]);
        assert!(
            changed(
                agent(),
                &UpdateAgentArgs {
                    soul: text("calm"),
                    ..UpdateAgentArgs::default()
                },
                &models
            )
            .unwrap()
            .1
            .is_empty()
        );
        for args in [
            UpdateAgentArgs {
                soul: text("  "),
                ..UpdateAgentArgs::default()
            },
            UpdateAgentArgs {
                model: text("huge"),
                ..UpdateAgentArgs::default()
            },
        ] {
            assert!(changed(agent(), &args, &models).is_err());
        }
        let none = UpdateAgentArgs {
            skills: Some(vec![]),
            ..UpdateAgentArgs::default()
        };
        assert_eq!(
            changed(agent(), &none, &models).unwrap().0.skills,
            Some(vec![])
        );
    }
}
