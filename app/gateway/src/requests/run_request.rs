//! Converts the body of a run request to a run request.

use harness::ids::{RunId, ThreadId};
use harness::runtime::agent::AssistantInfo;
use harness::runtime::runs::{
    DisconnectMode, Durability, IfNotExists, NodeSelector, Recovery, RunPresentation, RunRequest,
    RunScope,
};
use serde_json::{Map, Value, json};

use super::checkpoint::checkpoint_of;
use super::command::{command_issue, read_input};
use super::modes::read_modes;
use super::options::read_config;
use super::request_echo::{EchoContext, echo, redacted_fields};
use super::timing::{read_delay, read_multitask};
use super::{assistant_uuid, resolve_assistant};
use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};
use crate::extract::{Fields, parse_thread_id};

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
    /// Id for a new thread that is retained.
    pub fresh_thread: ThreadId,
    /// Id of the run.
    pub fresh_run: RunId,
    /// Metadata that runs inherit from the thread.
    pub thread_metadata: &'a Map<String, Value>,
}

/// Reads the body of a run request. Unknown fields are ignored; unsupported options that would
/// change the meaning of a run are rejected.
#[tracing::instrument(name = "into_spec", skip_all)]
pub fn into_request(
    body: Map<String, Value>,
    target: &RunTarget,
    dialect: Dialect,
    defaults: &Defaults<'_>,
) -> Result<RunRequest, ApiError> {
    let mut fields = Fields::new("body", body);
    refuse_unsupported(&mut fields, dialect);
    if dialect.is_platform() {
        check_words(&mut fields);
    }
    let assistant = fields.text("assistant_id");
    let multitask = read_multitask(&mut fields, dialect);
    let delay = read_delay(&mut fields, dialect);
    let webhook = fields.text("webhook").filter(|_| dialect.is_platform());
    let stream_modes = read_modes(&mut fields, dialect);
    let stream_subgraphs = fields.flag("stream_subgraphs").unwrap_or_default();
    let on_disconnect = fields
        .word(
            "on_disconnect",
            &[
                ("cancel", DisconnectMode::Cancel),
                ("continue", DisconnectMode::Continue),
            ],
        )
        .unwrap_or_else(|| dialect.disconnect_default());
    let interrupt_before = read_nodes(&mut fields, "interrupt_before");
    let interrupt_after = read_nodes(&mut fields, "interrupt_after");
    let sent_metadata = fields.object("metadata").unwrap_or_default();
    if let Some(value) = sent_metadata.get("auth_token") {
        // The value is omitted from the response: it is a credential.
        let _none: Option<()> = fields.refuse(
            "value_error",
            "metadata",
            "metadata must not carry auth_token",
            &json!(value.is_string()),
        );
    }
    let config = read_config(&mut fields, dialect)?;
    let scope = read_scope(&mut fields, target, dialect, defaults)?;
    let thread = match &scope {
        RunScope::Stateful { thread_id, .. } => Some(thread_id.clone()),
        RunScope::Stateless { .. } => None,
    };
    let checkpoint = checkpoint_of(&mut fields, thread.as_ref(), dialect)?;
    let command = fields.object("command").unwrap_or_default();
    if let Some(issue) = command_issue(&command, dialect) {
        fields.push(issue);
    }
    let durability = read_durability(&mut fields, dialect);
    if fields
        .value("input")
        .is_some_and(|input| !input.is_object())
    {
        let _none = fields.object("input");
    }
    if assistant.is_none() && dialect.is_platform() && fields.value("assistant_id").is_none() {
        fields.missing("assistant_id");
    }
    fields.check()?;

    if dialect.is_platform() && *target == RunTarget::Stateless && command.contains_key("resume") {
        return Err(ApiError::BadRequest(
            "You must provide a thread_id when resuming.".to_owned(),
        ));
    }
    let assistant = resolve_assistant(assistant.as_deref(), defaults.assistants, dialect)?;
    let input = read_input(&fields, command, dialect)?;
    let temporary = matches!(scope, RunScope::Stateless { temporary: true });
    let metadata = redacted_fields(read_metadata(
        &fields,
        sent_metadata,
        &assistant,
        defaults.thread_metadata,
        dialect,
    ));
    let echo_context = EchoContext {
        run: &defaults.fresh_run,
        thread: thread.as_ref(),
        assistant: &assistant,
        metadata: &metadata,
        temporary,
    };
    let request_echo = echo(&fields, &echo_context, stream_modes, dialect);
    Ok(RunRequest {
        scope,
        thread_ttl: None,
        run_id: Some(defaults.fresh_run.clone()),
        assistant,
        input,
        config,
        metadata,
        stream_modes,
        stream_subgraphs,
        presentation: RunPresentation {
            echo_input: dialect == Dialect::DeerFlow,
            describe_messages: dialect.is_platform(),
            request_echo,
        },
        keep_partial: dialect == Dialect::DeerFlow,
        durability,
        interrupt_before,
        interrupt_after,
        multitask,
        delay,
        recovery: fields.word(
            "recovery",
            &[("resume", Recovery::Resume), ("fail", Recovery::Fail)],
        ),
        webhook,
        request: None,
        on_disconnect,
        checkpoint,
    })
}

pub(super) fn unsupported(option: &str, input: &Value) -> Issue {
    Issue::new(
        "unsupported_run_option",
        vec!["body".into(), option.into()],
        format!("Run option '{option}' is not supported by DeerFlow"),
        input,
    )
    .ctx(json!({ "option": option }))
}

/// Rejects options that would change the meaning of a run and are not supported.
fn refuse_unsupported(fields: &mut Fields, dialect: Dialect) {
    let harmless = |option: &str, value: &Value| match (option, dialect) {
        ("stream_resumable", Dialect::DeerFlow) => value == &Value::Bool(false),
        ("if_not_exists", _) => value == "create" || dialect.is_platform(),
        ("multitask_strategy", Dialect::DeerFlow) => value != "enqueue",
        _ => dialect.is_platform(),
    };
    for option in [
        "stream_resumable",
        "on_completion",
        "after_seconds",
        "webhook",
        "feedback_keys",
        "if_not_exists",
        "multitask_strategy",
    ] {
        if let Some(value) = fields
            .value(option)
            .filter(|value| !harmless(option, value))
            .cloned()
        {
            fields.push(unsupported(option, &value));
        }
    }
}

/// Validates options that the request does not need, or that other code reads again.
fn check_words(fields: &mut Fields) {
    fields.word("if_not_exists", &[("create", ()), ("reject", ())]);
    fields.word("on_completion", &[("delete", ()), ("keep", ())]);
    fields.flag("stream_resumable");
    fields.texts("feedback_keys");
}

/// Reads `durability`, or `checkpoint_during` as its older form; DeerFlow has neither.
fn read_durability(fields: &mut Fields, dialect: Dialect) -> Durability {
    if !dialect.is_platform() {
        return Durability::default();
    }
    let older = fields.flag("checkpoint_during").map(|during| {
        if during {
            Durability::Async
        } else {
            Durability::Exit
        }
    });
    let words = [
        ("sync", Durability::Sync),
        ("async", Durability::Async),
        ("exit", Durability::Exit),
    ];
    fields
        .word("durability", &words)
        .or(older)
        .unwrap_or_default()
}

fn read_nodes(fields: &mut Fields, key: &str) -> NodeSelector {
    match fields.value(key) {
        None => NodeSelector::None,
        Some(Value::String(all)) if all == "*" => NodeSelector::All,
        Some(_) => match fields.texts(key) {
            Some(names) if !names.is_empty() => NodeSelector::Named(names),
            _ => NodeSelector::None,
        },
    }
}

fn read_scope(
    fields: &mut Fields,
    target: &RunTarget,
    dialect: Dialect,
    defaults: &Defaults<'_>,
) -> Result<RunScope, ApiError> {
    let create = fields
        .value("if_not_exists")
        .is_some_and(|word| word == "create");
    let configured = fields
        .value("config")
        .and_then(|config| config.pointer("/configurable/thread_id"))
        .and_then(Value::as_str);
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
            let if_not_exists = if create {
                IfNotExists::Create
            } else {
                IfNotExists::Reject
            };
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
            if fields
                .value("on_completion")
                .is_some_and(|word| word == "keep")
            {
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
    fields: &Fields,
    sent: Map<String, Value>,
    assistant: &str,
    of_thread: &Map<String, Value>,
    dialect: Dialect,
) -> Map<String, Value> {
    if dialect == Dialect::DeerFlow {
        return sent;
    }
    let mut metadata = Map::from_iter([("created_by".to_owned(), Value::from("system"))]);
    let of_config = fields
        .value("config")
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
    metadata.insert(
        "assistant_id".to_owned(),
        assistant_uuid(assistant).to_string().into(),
    );
    metadata
}

#[cfg(test)]
#[path = "run_request_tests.rs"]
mod tests;
