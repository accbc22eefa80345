//! Skills at work: `/name …` puts a skill before the model, and the tools that skills name are the only ones it may call.
//!
//! A skill is at work from where the user calls for it, or from where the agent reads its file, to the user's next message that is
//! no answer to the agent. What the model does not see any more, behind a summary, is not at work.

use async_trait::async_trait;
use serde_json::Value;

use super::framework_tags::neutralised;
use super::middleware::{Hooks, Middleware};
use super::next::{ModelNext, ToolNext};
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

/// The tool that reads files.
const READ: &str = "read_file";

/// Shows an agent the skill that its user calls for, and keeps it to the tools of the skills at work.
#[derive(Debug, Clone)]
pub struct SkillsMiddleware {
    skills: Skills,
    choice: SkillChoice,
}

/// What a conversation says of skills since its user last asked for something.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AtWork {
    /// Nothing.
    Nothing,
    /// The message at this place calls for this skill.
    Called { name: String, at: usize },
    /// The agent has read files of skills.
    Read(Vec<VirtualPath>),
}

impl SkillsMiddleware {
    /// For agents that may have these skills.
    pub fn new(skills: Skills, choice: SkillChoice) -> Self {
        Self { skills, choice }
    }

    async fn usable(&self, ctx: &RunContext) -> Result<Vec<Skill>, SkillError> {
        self.skills.usable(&ctx.actor.user_id, &self.choice).await
    }

    /// The tools that are left. Where nobody knows what the skills say, those that read.
    async fn policy(&self, at_work: &AtWork, ctx: &RunContext) -> ToolPolicy {
        if *at_work == AtWork::Nothing {
            return ToolPolicy::Any;
        }
        match self.usable(ctx).await {
            Ok(skills) => policy_of(at_work, &skills),
            Err(error) => {
                tracing::error!(%error, run_id = %ctx.run_id, "it is not known which tools the skills at work allow");
                ToolPolicy::closed()
            }
        }
    }

    /// What the model reads instead of having its call done.
    async fn refusal(&self, call: &ToolCall, at_work: &AtWork, ctx: &RunContext) -> Option<String> {
        if !self.policy(at_work, ctx).await.allows(&call.name) {
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
                "Error: {path} belongs to none of your skills. Work by those that you were told of, or without."
            )),
        }
    }

    /// The skill's text as the model reads it, or what to tell the user.
    async fn instructions(&self, name: &str, ctx: &RunContext) -> Result<String, String> {
        let unreadable = |error: SkillError| {
            tracing::error!(%error, skill = name, run_id = %ctx.run_id, "a skill cannot be read");
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
        let at_work = at_work(&request.messages.iter().collect::<Vec<_>>());
        if let AtWork::Called { name, at } = &at_work {
            match self.instructions(name, ctx).await {
                Ok(text) => {
                    let message = activation(&text, &request.messages[*at]);
                    request.messages.insert(*at, message);
                }
                Err(why) => return Ok(Message::ai(why)),
            }
        }
        let policy = self.policy(&at_work, ctx).await;
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
        // What the model saw when it made the call decided what it was offered.
        let at_work = at_work(&View::of(&ctx.state).told().collect::<Vec<_>>());
        match self.refusal(call, &at_work, &ctx.run).await {
            None => next.run(call, ctx).await,
            Some(why) => {
                tracing::warn!(tool = %call.name, run_id = %ctx.run.run_id, "a call is against the agent's skills");
                Ok(ToolOutput::error(why))
            }
        }
    }
}

/// What happened since the user last asked for something. A message that calls for a skill counts more than what was read since.
fn at_work(messages: &[&Message]) -> AtWork {
    let mut since = messages;
    for (at, message) in messages
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, message)| is_real_user_message(message))
    {
        if let Some(called) = Activation::read(&user_text(message)) {
            return AtWork::Called {
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
        AtWork::Nothing
    } else {
        AtWork::Read(read)
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

/// The skill's own file that a call reads.
fn skill_file_of(call: &ToolCall) -> Option<VirtualPath> {
    skill_path_of(call).filter(|path| path.file_name() == SKILL_FILE)
}

/// What a call names beneath the skills' folder.
fn skill_path_of(call: &ToolCall) -> Option<VirtualPath> {
    let path = VirtualPath::parse_readable(call.args.get("path").and_then(Value::as_str)?).ok()?;
    (path.root() == Root::Skills).then_some(path)
}

fn policy_of(at_work: &AtWork, skills: &[Skill]) -> ToolPolicy {
    match at_work {
        AtWork::Nothing => ToolPolicy::Any,
        AtWork::Called { name, .. } => {
            ToolPolicy::of([skills.iter().find(|skill| skill.name() == name)])
        }
        AtWork::Read(paths) => ToolPolicy::of(
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

/// The message that stands before the one that calls.
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
