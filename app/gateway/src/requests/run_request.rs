//! Converts the body of a run request to a run request.

use harness::ids::{RunId, ThreadId};
use harness::runtime::agent::{Agent, AssistantInfo};
use harness::runtime::runs::{
    Durability, IfNotExists, NodeSelector, Recovery, RunInput, RunPresentation, RunRequest,
    RunScope,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::bodies::RunCreate;
use super::checkpoint::{NamedCheckpoint, checkpoint_of};
use super::command::{command_issue, read_input};
use super::modes::read_modes;
use super::options::read_config;
use super::request_echo::{EchoContext, echo, redacted_fields};
use super::timing::{read_delay, read_multitask};
use super::unsupported::unsupported;
use super::{assistant_uuid, resolve_assistant};
use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};
use crate::extract::{Body, Issues, missing_issue, parse_thread_id};

/// Target of a run, by the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunTarget {
    /// An existing or new thread with this id.
    Thread(ThreadId),
    /// A temporary thread.
    Stateless,
}

/// Defaults for a body.
#[derive(Debug, Clone)]
pub struct Defaults<'a> {
    /// Available assistants; the first is DeerFlow's default.
    pub assistants: &'a [AssistantInfo],
    /// Id of the assistant that a user created or changed, if the body names one. Otherwise it is the
    /// id of the graph's assistant.
    pub assistant_id: Option<Uuid>,
    /// Id for a new thread that is retained.
    pub fresh_thread: ThreadId,
    /// Id of the run.
    pub fresh_run: RunId,
    /// Metadata that runs inherit from the thread.
    pub thread_metadata: &'a Map<String, Value>,
}

/// A run request whose input is not read yet: that depends on the agent.
#[derive(Debug)]
pub struct UnreadRequest {
    request: RunRequest,
    input: Option<Map<String, Value>>,
    command: Map<String, Value>,
    dialect: Dialect,
}

impl UnreadRequest {
    /// Returns the name of the assistant.
    pub fn assistant(&self) -> &str {
        &self.request.assistant
    }

    /// Returns the options by which the agent is resolved.
    pub fn options(&self) -> &Map<String, Value> {
        &self.request.config.options
    }

    /// Reads the input as `agent` accepts it. Without an agent, which is refused when the run is
    /// created, it is read as the lead agent's.
    pub fn read(self, agent: Option<&dyn Agent>) -> Result<RunRequest, ApiError> {
        Ok(RunRequest {
            input: read_input(self.input, self.command, agent, self.dialect)?,
            ..self.request
        })
    }
}

/// Reads the body of a run request, except its input. Unknown fields are ignored; unsupported options that would
/// change the meaning of a run are rejected.
#[tracing::instrument(name = "into_spec", skip_all)]
pub fn into_request(
    body: Map<String, Value>,
    target: &RunTarget,
    dialect: Dialect,
    defaults: &Defaults<'_>,
) -> Result<UnreadRequest, ApiError> {
    let unsupported = unsupported_options(&body, dialect);
    let needs_assistant =
        dialect.is_platform() && body.get("assistant_id").is_none_or(Value::is_null);
    let missing = needs_assistant.then(|| missing_issue("assistant_id", &body));
    let (mut body, mut issues) = Body::<RunCreate>::new(body, dialect).parts();
    let assistant = issues.text("assistant_id", std::mem::take(&mut body.assistant_id));
    let multitask = read_multitask(&body.multitask_strategy, &mut issues, dialect);
    let delay = read_delay(&body.after_seconds, &mut issues);
    let webhook = body.webhook.clone().filter(|_| dialect.is_platform());
    let stream_modes = read_modes(&body.stream_mode, &mut issues, dialect);
    let on_disconnect = body
        .on_disconnect
        .map_or_else(|| dialect.disconnect_default(), |word| word.0);
    let interrupt_before = read_nodes(&body.interrupt_before, "interrupt_before", &mut issues);
    let interrupt_after = read_nodes(&body.interrupt_after, "interrupt_after", &mut issues);
    let sent_metadata = std::mem::take(&mut body.metadata).unwrap_or_default();
    if let Some(value) = sent_metadata.get("auth_token") {
        // The value is omitted from the response: it is a credential.
        let _none: Option<()> = issues.refuse(
            "value_error",
            "metadata",
            "metadata must not carry auth_token",
            &json!(value.is_string()),
        );
    }
    let config = read_config(&body, &mut issues, dialect)?;
    let scope = read_scope(&body, target, dialect, defaults)?;
    let thread = match &scope {
        RunScope::Stateful { thread_id, .. } => Some(thread_id.clone()),
        RunScope::Stateless { .. } => None,
    };
    let named = NamedCheckpoint {
        object: body.checkpoint.as_ref(),
        id: body.checkpoint_id.as_deref(),
    };
    let checkpoint = checkpoint_of(named, &mut issues, thread.as_ref(), dialect)?;
    let command = body.command.as_ref();
    if let Some(issue) = command.and_then(|command| command_issue(command, dialect)) {
        issues.push(issue);
    }
    let resumes = command.is_some_and(|command| command.contains_key("resume"));
    issues.check_after(unsupported)?;
    if let Some(missing) = missing {
        return Err(ApiError::issue(missing));
    }

    if dialect.is_platform() && *target == RunTarget::Stateless && resumes {
        return Err(ApiError::BadRequest(
            "You must provide a thread_id when resuming.".to_owned(),
        ));
    }
    let assistant = resolve_assistant(assistant.as_deref(), defaults.assistants, dialect)?;
    let assistant_id = defaults
        .assistant_id
        .unwrap_or_else(|| assistant_uuid(&assistant));
    let temporary = matches!(scope, RunScope::Stateless { temporary: true });
    let metadata = redacted_fields(read_metadata(
        &body,
        sent_metadata,
        &assistant,
        assistant_id,
        defaults.thread_metadata,
        dialect,
    ));
    let echo_context = EchoContext {
        run: &defaults.fresh_run,
        thread: thread.as_ref(),
        assistant: &assistant,
        assistant_id,
        metadata: &metadata,
        temporary,
    };
    let request_echo = echo(&body, &echo_context, stream_modes, dialect)
        .map_err(|error| ApiError::Internal(format!("cannot serialize the request: {error}")))?;
    let command = body.command.take().unwrap_or_default();
    let input = body.input.take();
    let request = RunRequest {
        scope,
        thread_ttl: None,
        run_id: Some(defaults.fresh_run.clone()),
        assistant,
        input: RunInput::Continue,
        config,
        metadata,
        stream_modes,
        stream_subgraphs: body.stream_subgraphs.unwrap_or_default(),
        presentation: RunPresentation {
            echo_input: dialect == Dialect::DeerFlow,
            describe_messages: dialect.is_platform(),
            request_echo,
        },
        keep_partial: dialect == Dialect::DeerFlow,
        durability: read_durability(&body),
        interrupt_before,
        interrupt_after,
        multitask,
        delay,
        recovery: Recovery::deserialize(&body.recovery).ok(),
        webhook,
        request: None,
        on_disconnect,
        checkpoint,
    };
    Ok(UnreadRequest {
        request,
        input,
        command,
        dialect,
    })
}

/// Returns the issues of options that would change the meaning of a run and are not supported.
fn unsupported_options(body: &Map<String, Value>, dialect: Dialect) -> Vec<Issue> {
    let harmless = |option: &str, value: &Value| match (option, dialect) {
        ("stream_resumable", Dialect::DeerFlow) => value == &Value::Bool(false),
        ("if_not_exists", _) => value == "create" || dialect.is_platform(),
        ("multitask_strategy", Dialect::DeerFlow) => value != "enqueue",
        _ => dialect.is_platform(),
    };
    [
        "stream_resumable",
        "on_completion",
        "after_seconds",
        "webhook",
        "feedback_keys",
        "if_not_exists",
        "multitask_strategy",
    ]
    .into_iter()
    .filter_map(|option| {
        let value = body.get(option).filter(|value| !value.is_null())?;
        (!harmless(option, value)).then(|| unsupported(option, value))
    })
    .collect()
}

/// Reads `durability`, or `checkpoint_during` as its older form; DeerFlow has neither.
fn read_durability(body: &RunCreate) -> Durability {
    let older = body.checkpoint_during.map(|during| {
        if during {
            Durability::Async
        } else {
            Durability::Exit
        }
    });
    let named = body.durability.map(|word| word.0);
    named.or(older).unwrap_or_default()
}

fn read_nodes(value: &Value, key: &str, issues: &mut Issues) -> NodeSelector {
    match value {
        Value::Null => NodeSelector::None,
        Value::String(all) if all == "*" => NodeSelector::All,
        _ => match issues.texts(key, value) {
            Some(names) if !names.is_empty() => NodeSelector::Named(names),
            _ => NodeSelector::None,
        },
    }
}

fn read_scope(
    body: &RunCreate,
    target: &RunTarget,
    dialect: Dialect,
    defaults: &Defaults<'_>,
) -> Result<RunScope, ApiError> {
    let configured = body
        .config
        .as_ref()
        .and_then(|config| config.get("configurable")?.get("thread_id")?.as_str());
    let stateful = |thread_id| RunScope::Stateful {
        thread_id,
        if_not_exists: IfNotExists::Create,
    };
    Ok(match (target, dialect) {
        // On DeerFlow's thread routes the thread must exist, regardless of the option.
        (RunTarget::Thread(thread), Dialect::DeerFlow) => {
            configured
                .map(|id| parse_thread_id(id, dialect, "body"))
                .transpose()?;
            RunScope::Stateful {
                thread_id: thread.clone(),
                if_not_exists: IfNotExists::Reject,
            }
        }
        (RunTarget::Thread(thread), Dialect::Platform) => {
            let if_not_exists = body
                .if_not_exists
                .map_or(IfNotExists::Reject, |word| word.0);
            RunScope::Stateful {
                thread_id: thread.clone(),
                if_not_exists,
            }
        }
        (RunTarget::Stateless, Dialect::DeerFlow) => match configured {
            Some(id) => stateful(parse_thread_id(id, dialect, "body")?),
            None => stateful(defaults.fresh_thread.clone()),
        },
        (RunTarget::Stateless, Dialect::Platform) => {
            if body.on_completion.is_some_and(|keep| keep.0) {
                stateful(defaults.fresh_thread.clone())
            } else {
                RunScope::Stateless { temporary: true }
            }
        }
    })
}

/// Merges the metadata of the assistant, the thread, the configuration and the request; later
/// values win.
fn read_metadata(
    body: &RunCreate,
    sent: Map<String, Value>,
    assistant: &str,
    assistant_id: Uuid,
    of_thread: &Map<String, Value>,
    dialect: Dialect,
) -> Map<String, Value> {
    if dialect == Dialect::DeerFlow {
        return sent;
    }
    let mut metadata = Map::from_iter([("created_by".to_owned(), Value::from("system"))]);
    let of_config = body
        .config
        .as_ref()
        .and_then(|config| config.get("metadata"))
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let reserved = ["thread_id", "run_id", "cron_id", "auth_token"];
    metadata.extend(
        of_thread
            .clone()
            .into_iter()
            .chain(of_config)
            .chain(sent)
            .filter(|(key, _)| !reserved.contains(&key.as_str())),
    );
    metadata.insert("graph_id".to_owned(), assistant.into());
    metadata.insert("assistant_id".to_owned(), assistant_id.to_string().into());
    metadata
}

#[cfg(test)]
#[path = "run_request_tests.rs"]
mod tests;
