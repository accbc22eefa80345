//! Arguments of the tools, validated before a run starts.

use harness::client::ChatOptions;
use harness::ids::ThreadId;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Maximum length of a message, in bytes.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Arguments of `ask`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskArgs {
    /// What to say to the agent: a question or a task, with everything it has to know. It sees nothing of your conversation.
    message: String,
    /// The conversation to go on with, as an earlier answer named it. Left out, a new one begins.
    #[serde(default)]
    thread_id: Option<String>,
    /// The model to ask, by its name in the agent's configuration. Left out, the agent's own.
    #[serde(default)]
    model: Option<String>,
    /// The custom agent to ask, by its name. Left out, the lead agent.
    #[serde(default)]
    agent: Option<String>,
    /// Whether the model thinks before it answers, where it can. Yes, when left out.
    #[serde(default)]
    thinking: Option<bool>,
    /// Whether the agent plans with a list of things to do: for tasks of many steps. No, when left out.
    #[serde(default)]
    plan: Option<bool>,
    /// Whether the agent may hand parts of the task to other agents, which work side by side. No, when left out.
    #[serde(default)]
    subagents: Option<bool>,
}

/// Validated arguments of `ask`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) message: String,
    /// Conversation to continue.
    pub(crate) thread: Option<ThreadId>,
    pub(crate) options: ChatOptions,
}

impl Question {
    /// Parses the arguments; the error explains what is wrong.
    pub(crate) fn read(arguments: Option<JsonObject>) -> Result<Self, String> {
        let args: AskArgs = read(arguments)?;
        if args.message.trim().is_empty() {
            return Err("`message` is empty".to_owned());
        }
        if args.message.len() > MAX_MESSAGE_BYTES {
            return Err(format!(
                "`message` has {} bytes, the maximum is {MAX_MESSAGE_BYTES}",
                args.message.len()
            ));
        }
        let mut options = ChatOptions::default();
        options.model_name = args.model;
        options.agent_name = args.agent;
        options.thinking_enabled = args.thinking.unwrap_or(options.thinking_enabled);
        options.plan_mode = args.plan.unwrap_or(options.plan_mode);
        options.subagent_enabled = args.subagents.unwrap_or(options.subagent_enabled);
        Ok(Self {
            message: args.message,
            thread: args.thread_id.map(thread).transpose()?,
            options,
        })
    }
}

/// Arguments of `read_artifact`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadArtifactArgs {
    /// The conversation that the file belongs to, as an answer named it.
    thread_id: String,
    /// The file, as an answer named it: it begins with /mnt/user-data.
    path: String,
}

/// Validated arguments of `read_artifact`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ArtifactRequest {
    pub(crate) thread: ThreadId,
    pub(crate) path: String,
}

impl ArtifactRequest {
    /// Parses the arguments; the error explains what is wrong.
    pub(crate) fn read(arguments: Option<JsonObject>) -> Result<Self, String> {
        let args: ReadArtifactArgs = read(arguments)?;
        Ok(Self {
            thread: thread(args.thread_id)?,
            path: args.path,
        })
    }
}

fn read<T: DeserializeOwned>(arguments: Option<JsonObject>) -> Result<T, String> {
    let arguments = Value::Object(arguments.unwrap_or_default());
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        match error.path().to_string().as_str() {
            "." => format!("the arguments cannot be used: {}", error.inner()),
            field => format!("`{field}` cannot be used: {}", error.inner()),
        }
    })
}

fn thread(id: String) -> Result<ThreadId, String> {
    ThreadId::parse(id).map_err(|error| format!("`thread_id` cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(arguments: Value) -> Result<Question, String> {
        Question::read(arguments.as_object().cloned())
    }

    #[test]
    fn omitted_arguments_use_client_defaults() {
        let asked = question(json!({ "message": "hi", "thread_id": null })).unwrap();
        assert_eq!(
            asked,
            Question {
                message: "hi".to_owned(),
                thread: None,
                options: ChatOptions::default()
            }
        );
        let all = json!({ "message": "hi", "thread_id": "t-1", "model": "m", "agent": "a", "thinking": false, "plan": true, "subagents": true });
        let asked = question(all).unwrap();
        assert_eq!(asked.thread, Some(ThreadId::parse("t-1").unwrap()));
        assert_eq!(
            (
                asked.options.model_name.as_deref(),
                asked.options.agent_name.as_deref()
            ),
            (Some("m"), Some("a"))
        );
        assert_eq!(
            (
                asked.options.thinking_enabled,
                asked.options.plan_mode,
                asked.options.subagent_enabled
            ),
            (false, true, true)
        );
    }

    #[test]
    fn invalid_arguments_are_named() {
        for (arguments, named) in [
            (json!({}), "message"),
            (json!({ "message": 5 }), "`message`"),
            (json!({ "message": " \n" }), "`message` is empty"),
            (
                json!({ "message": "x".repeat(MAX_MESSAGE_BYTES + 1) }),
                "the maximum",
            ),
            (
                json!({ "message": "x", "thread_id": "../../etc" }),
                "`thread_id`",
            ),
            (json!({ "message": "x", "thread_id": ["a"] }), "`thread_id`"),
            (json!({ "message": "x", "plan": "yes" }), "`plan`"),
            (json!({ "message": "x", "temperature": 1 }), "temperature"),
        ] {
            let problem = question(arguments).unwrap_err();
            assert!(problem.contains(named), "{named}: {problem}");
        }
        assert!(Question::read(None).unwrap_err().contains("message"));
        assert!(
            ArtifactRequest::read(json!({ "thread_id": "t" }).as_object().cloned())
                .unwrap_err()
                .contains("path")
        );
    }
}
