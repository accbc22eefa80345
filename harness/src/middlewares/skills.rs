//! Active skills: `/name …` adds a skill to the request, and the model may call only the tools that
//! the active skills name.
//!
//! A skill is active from the message in which the user invokes it, or from the call in which the
//! agent reads its file, until the user's next message that does not answer the agent. Messages
//! that a summary has replaced do not count.

use async_trait::async_trait;
use serde_json::Value;

use super::framework_tags::neutralised;
use super::hooks::Hooks;
use super::middleware::{Middleware, ModelNext, ToolNext};
use super::real_user::{answers_agent, is_real_user_message, user_text};
use super::summarization::View;
use crate::messages::{Message, MessageKind, ToolCall, ToolStatus, kwargs};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::sandbox::VirtualPath;
use crate::sandbox::virtual_paths::Root;
use crate::skills::activation::Activation;
use crate::skills::policy::ToolPolicy;
use crate::skills::{SKILL_FILE, Skill, SkillChoice, SkillError, Skills};
use crate::tools::{ToolContext, ToolError, ToolOutput};

/// Tool that reads files.
const READ: &str = "read_file";

/// Adds the invoked skill to requests, and restricts an agent to the tools of the active skills.
#[derive(Debug, Clone)]
pub struct SkillsMiddleware {
    skills: Skills,
    choice: SkillChoice,
}

/// Active skills since the user's last request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ActiveSkills {
    /// No active skill.
    Nothing,
    /// The message at this index invokes this skill.
    Called { name: String, at: usize },
    /// The agent has read these files of skills.
    Read(Vec<VirtualPath>),
}

impl SkillsMiddleware {
    /// Creates the middleware for agents with access to these skills.
    pub fn new(skills: Skills, choice: SkillChoice) -> Self {
        Self { skills, choice }
    }

    async fn usable(&self, ctx: &RunContext) -> Result<Vec<Skill>, SkillError> {
        self.skills.usable(&ctx.actor.user_id, &self.choice).await
    }

    /// Returns the permitted tools. If the skills cannot be loaded, only reading tools are
    /// permitted.
    async fn policy(&self, active_skills: &ActiveSkills, ctx: &RunContext) -> ToolPolicy {
        if *active_skills == ActiveSkills::Nothing {
            return ToolPolicy::Any;
        }
        match self.usable(ctx).await {
            Ok(skills) => policy_of(active_skills, &skills),
            Err(error) => {
                tracing::error!(%error, run_id = %ctx.run_id, "cannot load the active skills, permitting reading tools only");
                ToolPolicy::closed()
            }
        }
    }

    /// Returns the error for the model if the call is not permitted.
    async fn refusal(
        &self,
        call: &ToolCall,
        active_skills: &ActiveSkills,
        ctx: &RunContext,
    ) -> Option<String> {
        if !self.policy(active_skills, ctx).await.allows(&call.name) {
            return Some(format!(
                "Error: the skill you work by does not allow {}. Do it with the tools that the skill names, or tell the user what is missing.",
                call.name
            ));
        }
        let path =
            skill_path_of(call).filter(|_| call.name == READ && self.choice != SkillChoice::All)?;
        let is_own = |skills: Vec<Skill>| skills.iter().any(|skill| skill.holds(&path));
        match self.usable(ctx).await.is_ok_and(is_own) {
            true => None,
            false => Some(format!(
                "Error: {path} belongs to none of your skills. Use the listed skills, or continue without a skill."
            )),
        }
    }

    /// Returns the skill's text for the model, or an error text for the user.
    async fn instructions(&self, name: &str, ctx: &RunContext) -> Result<String, String> {
        let unreadable = |error: SkillError| {
            tracing::error!(%error, skill = name, run_id = %ctx.run_id, "cannot read a skill");
            format!("The skill `{name}` cannot be read at the moment.")
        };
        let skills = self.usable(ctx).await.map_err(unreadable)?;
        let Some(skill) = skills.iter().find(|skill| skill.name() == name) else {
            let names: Vec<String> = skills
                .iter()
                .map(|skill| format!("`/{}`", skill.name()))
                .collect();
            let offer = if names.is_empty() {
                "there are none".to_owned()
            } else {
                format!("there are {}", names.join(", "))
            };
            return Err(format!(
                "There is no skill `{name}` that I can use; {offer}."
            ));
        };
        let text = self.skills.text(skill).await.map_err(unreadable)?;
        Ok(block(skill, &text))
    }
}

#[async_trait]
impl Middleware for SkillsMiddleware {
    fn name(&self) -> &str {
        "SkillsMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_MODEL | Hooks::WRAP_TOOL
    }

    async fn wrap_model_call(
        &self,
        mut request: ModelRequest,
        ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        let active_skills = active_skills(&request.messages.iter().collect::<Vec<_>>());
        if let ActiveSkills::Called { name, at } = &active_skills {
            match self.instructions(name, ctx).await {
                Ok(text) => {
                    let message = activation(&text, &request.messages[*at]);
                    request.messages.insert(*at, message);
                }
                Err(why) => return Ok(Message::ai(why)),
            }
        }
        let policy = self.policy(&active_skills, ctx).await;
        if policy != ToolPolicy::Any {
            request.tools = request
                .tools
                .iter()
                .filter(|tool| policy.allows(&tool.name))
                .cloned()
                .collect();
        }
        next.run(request).await
    }

    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        ctx: &ToolContext,
        next: ToolNext<'_>,
    ) -> Result<ToolOutput, ToolError> {
        // Uses the messages that the model saw when it made the call.
        let active_skills =
            active_skills(&View::of(&ctx.state).visible_messages().collect::<Vec<_>>());
        match self.refusal(call, &active_skills, &ctx.run).await {
            None => next.run(call, ctx).await,
            Some(why) => {
                tracing::warn!(tool = %call.name, run_id = %ctx.run.run_id, "active skills do not permit a tool call");
                Ok(ToolOutput::error(why))
            }
        }
    }
}

/// Determines the active skills since the user's last request. A message that invokes a skill takes
/// precedence over files read later.
fn active_skills(messages: &[&Message]) -> ActiveSkills {
    let mut since = messages;
    for (at, message) in messages
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, message)| is_real_user_message(message))
    {
        if let Some(called) = Activation::read(&user_text(message)) {
            return ActiveSkills::Called {
                name: called.name.to_owned(),
                at,
            };
        }
        since = &messages[at..];
        if !answers_agent(message, &messages[..at]) {
            break;
        }
    }
    let was_read = |call: &&ToolCall| {
        let is_result = |message: &&&Message| message.tool_call_id() == Some(call.id.as_str());
        call.name == READ
            && since
                .iter()
                .find(is_result)
                .is_some_and(|result| is_success(result))
    };
    let calls = since.iter().flat_map(|message| message.tool_calls());
    let read: Vec<VirtualPath> = calls.filter(was_read).filter_map(skill_file_of).collect();
    if read.is_empty() {
        ActiveSkills::Nothing
    } else {
        ActiveSkills::Read(read)
    }
}

fn is_success(result: &Message) -> bool {
    matches!(
        result.kind,
        MessageKind::Tool {
            status: ToolStatus::Success,
            ..
        }
    )
}

/// Returns the path of the main file of a skill that a call reads.
fn skill_file_of(call: &ToolCall) -> Option<VirtualPath> {
    skill_path_of(call).filter(|path| path.file_name() == SKILL_FILE)
}

/// Returns the path below the skills folder that a call names.
fn skill_path_of(call: &ToolCall) -> Option<VirtualPath> {
    let path = VirtualPath::parse_readable(call.args.get("path").and_then(Value::as_str)?).ok()?;
    (path.root() == Root::Skills).then_some(path)
}

fn policy_of(active_skills: &ActiveSkills, skills: &[Skill]) -> ToolPolicy {
    match active_skills {
        ActiveSkills::Nothing => ToolPolicy::Any,
        ActiveSkills::Called { name, .. } => {
            ToolPolicy::of([skills.iter().find(|skill| skill.name() == name)])
        }
        ActiveSkills::Read(paths) => ToolPolicy::of(
            paths
                .iter()
                .map(|path| skills.iter().find(|skill| skill.holds(path))),
        ),
    }
}

fn block(skill: &Skill, text: &str) -> String {
    let (name, file) = (skill.name(), skill.file());
    format!(
        "<slash_skill_activation>\nThe user calls for the skill {name} with the next message. What follows is its file {file}, whole: do \
         the work by it. Files that it names lie in the same folder; read those that you need.\n\n{}\n</slash_skill_activation>",
        neutralised(text)
    )
}

/// Creates the message with the skill's text, which precedes the invoking message.
fn activation(text: &str, called_by: &Message) -> Message {
    let id = called_by
        .id
        .as_deref()
        .map(|id| format!("{id}__slash_activation"));
    Message::human(text).with(|body| {
        body.id = id;
        body.additional_kwargs
            .insert(kwargs::HIDE_FROM_UI.to_owned(), Value::Bool(true));
    })
}

#[cfg(test)]
#[path = "skills_tests.rs"]
mod tests;
