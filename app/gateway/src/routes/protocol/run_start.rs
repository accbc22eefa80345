//! `run.start`: creates a run of a thread, or answers its open question.

use std::sync::Arc;

use deerflow_domain::threads::ThreadRecord;
use harness::ids::ThreadId;
use harness::runtime::runs::ThreadStatus;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::answer::CommandError;
use super::own_thread;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::check_fields;
use crate::requests::RunTarget;
use crate::routes::runs::spec_for;
use crate::state::GatewayState;

/// Modes of the frames that the protocol is converted from.
const MODES: [&str; 6] = [
    "values",
    "updates",
    "messages-tuple",
    "custom",
    "tasks",
    "checkpoints",
];

/// Executes `run.start`.
pub(super) async fn start(
    state: &Arc<GatewayState>,
    thread: &ThreadId,
    mut params: Map<String, Value>,
) -> Result<Value, CommandError> {
    let assistant = match params.shift_remove("assistant_id") {
        Some(Value::String(name)) if !name.is_empty() => name,
        _ => return Err(CommandError::invalid("assistant_id must be a text")),
    };
    let existing = own_thread(state, thread).await?;
    let checkpoint = read_checkpoint(&params)?;
    let mut body = run_options(&mut params)?;
    body.insert("assistant_id".to_owned(), assistant.into());
    let multitask = read_multitask(&params);
    body.insert("multitask_strategy".to_owned(), multitask.into());
    let input = params.shift_remove("input").unwrap_or_default();
    let is_answer = checkpoint.is_none()
        && !input.is_null()
        && !questions(state, existing.as_ref()).await?.is_empty();
    if let Some(checkpoint) = checkpoint {
        body.insert("checkpoint_id".to_owned(), checkpoint.into());
    }
    if is_answer {
        body.insert("command".to_owned(), json!({ "resume": input }));
    } else {
        body.insert("input".to_owned(), input);
    }
    create(state, thread, body).await
}

/// Creates the run of a body and returns its id.
pub(super) async fn create(
    state: &Arc<GatewayState>,
    thread: &ThreadId,
    body: Map<String, Value>,
) -> Result<Value, CommandError> {
    check_fields(&body, &state.info.field_limits())?;
    let target = RunTarget::Thread(thread.clone());
    let request = spec_for(state, Dialect::Platform, &target, body).await?;
    let run = state.runs.create_background(request).await;
    let run = run.map_err(ApiError::from)?;
    Ok(json!({ "run_id": run.run_id }))
}

/// Returns the part of a run's body that commands have in common, from their `config` and
/// `metadata`.
pub(super) fn run_options(
    params: &mut Map<String, Value>,
) -> Result<Map<String, Value>, CommandError> {
    let mut body = Map::from_iter([
        ("stream_mode".to_owned(), json!(MODES)),
        ("stream_subgraphs".to_owned(), json!(true)),
        ("stream_resumable".to_owned(), json!(true)),
        ("if_not_exists".to_owned(), json!("create")),
        ("durability".to_owned(), json!("async")),
    ]);
    for field in ["config", "metadata"] {
        match params.shift_remove(field) {
            None | Some(Value::Null) => {}
            Some(value @ Value::Object(_)) => {
                body.insert(field.to_owned(), value);
            }
            Some(_) => return Err(CommandError::invalid(format!("{field} must be an object"))),
        }
    }
    if let Some(config) = body.get_mut("config")
        && let Some(options) = config.get_mut("configurable")
        && let Some(options) = options.as_object_mut()
    {
        // The path and the checkpoint of the body name these.
        for key in ["thread_id", "checkpoint_id"] {
            options.shift_remove(key);
        }
    }
    Ok(body)
}

/// Reads the checkpoint that the run starts from, in `config.configurable`.
fn read_checkpoint(params: &Map<String, Value>) -> Result<Option<String>, CommandError> {
    let configured = params
        .get("config")
        .and_then(|config| config.get("configurable")?.get("checkpoint_id"));
    match configured {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) if Uuid::parse_str(id).is_ok() => Ok(Some(id.clone())),
        Some(_) => Err(CommandError::invalid("checkpoint_id must be a UUID")),
    }
}

/// Reads the strategy for a busy thread, in both spellings of its key. An unknown one means that
/// the run waits.
fn read_multitask(params: &Map<String, Value>) -> &'static str {
    let known = ["multitaskStrategy", "multitask_strategy"]
        .into_iter()
        .find_map(|key| params.get(key)?.as_str());
    match known {
        Some("reject") => "reject",
        Some("interrupt") => "interrupt",
        Some("rollback") => "rollback",
        _ => "enqueue",
    }
}

/// Returns the ids of the open questions of a thread.
pub(super) async fn questions(
    state: &GatewayState,
    thread: Option<&ThreadRecord>,
) -> Result<Vec<String>, CommandError> {
    let Some(thread) = thread.filter(|thread| thread.status == ThreadStatus::Interrupted) else {
        return Ok(Vec::new());
    };
    let checkpoints = &state.thread_services.checkpoints;
    let newest = checkpoints.get(&thread.thread_id, None).await;
    let newest = newest.map_err(ApiError::from)?;
    let tasks = newest.map(|newest| newest.meta.next).unwrap_or_default();
    let ids = tasks.iter().flat_map(|task| &task.interrupts);
    Ok(ids
        .filter_map(|question| question["id"].as_str().map(str::to_owned))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn strategy_is_read_in_both_spellings() {
        for (given, expected) in [
            (json!({ "multitaskStrategy": "reject" }), "reject"),
            (json!({ "multitask_strategy": "rollback" }), "rollback"),
            (
                json!({ "multitaskStrategy": "interrupt", "multitask_strategy": "reject" }),
                "interrupt",
            ),
            (json!({ "multitaskStrategy": "sometimes" }), "enqueue"),
            (json!({ "multitaskStrategy": 5 }), "enqueue"),
            (json!({}), "enqueue"),
        ] {
            assert_eq!(read_multitask(&params(given.clone())), expected, "{given}");
        }
    }

    #[test]
    fn checkpoint_must_be_a_uuid() {
        let read = |id: Value| {
            read_checkpoint(&params(
                json!({ "config": { "configurable": { "checkpoint_id": id } } }),
            ))
        };
        let id = "1f1e9d9c-2785-6a4d-8000-ff1ddcee5275";
        assert_eq!(read(json!(id)), Ok(Some(id.to_owned())));
        assert_eq!(read(json!(null)), Ok(None));
        for bad in [json!(""), json!("x"), json!(5), json!({})] {
            assert_eq!(read(bad).expect_err("refused").code, "invalid_argument");
        }
    }

    #[test]
    fn options_of_other_types_are_refused() {
        for field in ["config", "metadata"] {
            for bad in [json!(5), json!("x"), json!([]), json!(true)] {
                let mut given = Map::from_iter([(field.to_owned(), bad)]);
                let refused = run_options(&mut given).expect_err("refused");
                assert!(refused.message.starts_with(field), "{refused}");
            }
        }
    }
}
