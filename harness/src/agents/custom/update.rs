//! The tools by which agents are made and change themselves.

use std::sync::Arc;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::{change, change_default_soul};
use super::port::{AgentName, CustomAgent, CustomAgentError, CustomAgents};
use crate::state::StateUpdate;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// The option that names the agent.
pub(crate) const AGENT_NAME: &str = "agent_name";
/// The channel that tells clients which agent was made.
const CREATED_AGENT_NAME: &str = "created_agent_name";
/// What models write when they mean that something is absent.
const ABSENT: [&str; 3] = ["null", "none", "undefined"];

/// `setup_agent`: keeps an agent that the user has described.
#[derive(Debug, Clone)]
pub struct SetupAgent {
    /// Where agents are kept.
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
        let Some(name) = named(ctx) else {
            change_default_soul(&*self.agents, user, &args.soul).await?;
            return Ok(
                "The soul of the assistant is saved; it counts from the next message on.".into(),
            );
        };
        let name = AgentName::parse(name).map_err(told)?;
        if name.is_reserved() {
            return Err(told(format_args!(
                "no agent can be called {name}; ask the user for another name."
            )));
        }
        let described = |known: Option<CustomAgent>| {
            let known = known.filter(|agent| !agent.shared).unwrap_or_default();
            let skills = args.skills.clone().or(known.skills.clone());
            Ok::<_, ToolError>(Some(CustomAgent {
                soul: args.soul.clone(),
                description: args.description.clone(),
                skills,
                ..known
            }))
        };
        change(&*self.agents, user, &name, described).await?;
        let update = StateUpdate::channel(CREATED_AGENT_NAME, name.as_str().into());
        Ok(ToolOutput {
            update,
            ..format!("The agent {name} is saved.").into()
        })
    }
}

/// `update_agent`: lets an agent change itself when its user wants it.
#[derive(Debug, Clone)]
pub struct UpdateAgent {
    /// Where agents are kept.
    pub agents: Arc<dyn CustomAgents>,
    /// The model entries there are.
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
        let name = AgentName::parse(named(ctx).unwrap_or_default()).map_err(told)?;
        let what = Mutex::default();
        change(&*self.agents, user, &name, |known| {
            let Some(known) = known.filter(|agent| !agent.shared) else {
                return Err(ToolError::for_model(format!(
                    "Error: {name} is no agent of this user and cannot be changed."
                )));
            };
            let (agent, changed) = changed(known, &args, &self.models)?;
            *what.lock() = changed;
            Ok(Some(agent))
        })
        .await?;
        let what = what.into_inner();
        if what.is_empty() {
            return Ok("Nothing was to be changed.".into());
        }
        Ok(format!(
            "Changed: {}. It counts from the next message on.",
            what.join(", ")
        )
        .into())
    }
}

/// The agent that the run names.
fn named(ctx: &ToolContext) -> Option<&str> {
    ctx.run
        .option_str(AGENT_NAME)
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

/// The agent with what was said, and the names of what is different.
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
    for (key, new, held) in [
        ("skills", &args.skills, &mut agent.skills),
        ("tool_groups", &args.tool_groups, &mut agent.tool_groups),
    ] {
        if new.is_some() && new != held {
            held.clone_from(new);
            changed.push(key);
        }
    }
    Ok((agent, changed))
}

fn told(error: impl std::fmt::Display) -> ToolError {
    ToolError::for_model(format!("Error: {error}"))
}

impl From<CustomAgentError> for ToolError {
    fn from(error: CustomAgentError) -> Self {
        told(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_replaces_and_what_is_not_stays() {
        let agent = || CustomAgent {
            soul: "calm".to_owned(),
            description: "d".to_owned(),
            ..CustomAgent::default()
        };
        let models = ["big".to_owned()];
        let text = |text: &str| Some(text.to_owned());
        let said = UpdateAgentArgs {
            soul: text("wild"),
            description: text("None"),
            model: text("big"),
            ..UpdateAgentArgs::default()
        };
        let (new, what) = changed(agent(), &said, &models).unwrap();
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
