//! `POST /threads`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use deerflow_domain::threads::{Created, NewThread, ThreadRecord};
use harness::runtime::actor_context::{Owner, required_user_id};
use harness::runtime::runs::store::{CreatedResource, RequestKey};
use serde_json::{Map, Value};

use super::client_metadata;
use super::options::read_ttl;
use super::update_state::{Update, change_state, read_update};
use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};
use crate::extract::{Body, Fields, parse_thread_id};
use crate::idempotency::{IdempotencyKey, idempotent};
use crate::queries::threads::{require_thread, thread_facts};
use crate::requests::NodeCommand;
use crate::responses::{ThreadFacts, thread_json};
use crate::routes::{App, JsonResult, ResponseResult, run_to_completion};
use crate::state::GatewayState;

/// Maximum length of the name of a thread's assistant, in bytes.
const MAX_ASSISTANT_BYTES: usize = 128;

pub(crate) async fn create(
    State(state): App,
    dialect: Dialect,
    idempotency_key: IdempotencyKey,
    Body(body): Body,
) -> ResponseResult {
    let key = idempotency_key.with_body(&state, [body.map()]);
    let replay = |created| async {
        match created {
            CreatedResource::Thread(thread) => {
                Ok(
                    existing_thread(&state, &require_thread(&state, &thread).await?, dialect)
                        .await?
                        .into_response(),
                )
            }
            other => Err(ApiError::Internal(format!(
                "the idempotency key of a thread refers to {other:?}"
            ))),
        }
    };
    let make = async {
        Ok(make(&state, dialect, body, key.clone())
            .await?
            .into_response())
    };
    idempotent(&state, key.as_ref(), make, replay).await
}

async fn make(
    state: &Arc<GatewayState>,
    dialect: Dialect,
    mut body: Fields,
    request: Option<RequestKey>,
) -> JsonResult {
    let thread_id = match body.text("thread_id") {
        Some(id) => parse_thread_id(&id, dialect, "body")?,
        None => state.ids.thread_id(),
    };
    let metadata = client_metadata(body.object("metadata").unwrap_or_default(), dialect);
    let assistant = body.text("assistant_id").filter(|_| !dialect.is_platform());
    let (mut keep_existing, mut ttl, mut seed) = (true, None, Vec::new());
    if dialect.is_platform() {
        keep_existing = body
            .word("if_exists", &[("raise", false), ("do_nothing", true)])
            .unwrap_or_default();
        ttl = read_ttl(&mut body).or_else(|| state.info.thread_ttl());
        seed = read_supersteps(&mut body);
    }
    if assistant
        .as_ref()
        .is_some_and(|assistant| assistant.len() > MAX_ASSISTANT_BYTES)
    {
        let text = format!("assistant_id should have at most {MAX_ASSISTANT_BYTES} bytes");
        let _none: Option<()> = body.refuse("string_too_long", "assistant_id", text, &Value::Null);
    }
    body.finish()?;
    let user_id = Some(required_user_id().map_err(|error| ApiError::Internal(error.to_string()))?);
    let at = state.clock.now();
    // A seeded thread is complete only after its last step, so its key is stored then.
    let (with_thread, with_seed) = if seed.is_empty() {
        (request, None)
    } else {
        (None, request)
    };
    let new = NewThread {
        thread_id: thread_id.clone(),
        user_id,
        assistant,
        assistant_id: None,
        metadata,
        ttl,
        request: with_thread,
        at,
    };
    match state.threads.create(new).await? {
        Created::New(record) if seed.is_empty() => {
            Ok(Json(thread_json(&record, ThreadFacts::default(), dialect)))
        }
        Created::New(record) => {
            let seeded = run_to_completion(
                state,
                "seed a thread",
                seeded(Arc::clone(state), record, with_seed, seed, dialect),
            )
            .await?;
            let facts = thread_facts(state, &seeded, dialect).await?;
            Ok(Json(thread_json(&seeded, facts, dialect)))
        }
        Created::Existing(record) if keep_existing => {
            existing_thread(state, &record, dialect).await
        }
        Created::Existing(_) | Created::Taken => Err(ApiError::Conflict(format!(
            "Thread with ID {thread_id} already exists"
        ))),
        Created::Known(known) => Err(ApiError::KnownRequest(known)),
    }
}

/// Returns a thread that already exists.
async fn existing_thread(
    state: &GatewayState,
    record: &ThreadRecord,
    dialect: Dialect,
) -> JsonResult {
    let facts = if dialect.is_platform() {
        thread_facts(state, record, dialect).await?
    } else {
        ThreadFacts::default()
    };
    Ok(Json(thread_json(record, facts, dialect)))
}

/// Reads the steps of a thread's first state; each step has one or more updates.
fn read_supersteps(body: &mut Fields) -> Vec<Vec<Update>> {
    let Some(sent) = body.value("supersteps").cloned() else {
        return Vec::new();
    };
    let updates_of = |step: &Value| -> Option<Vec<Map<String, Value>>> {
        step.get("updates")?
            .as_array()?
            .iter()
            .map(|update| update.as_object().cloned())
            .collect()
    };
    let steps: Option<Vec<_>> = sent
        .as_array()
        .and_then(|steps| steps.iter().map(updates_of).collect());
    let Some(steps) = steps else {
        let msg = "supersteps should be a list of {\"updates\": [{\"values\", \"command\", \"as_node\"}]}";
        return body
            .refuse("list_type", "supersteps", msg, &sent)
            .unwrap_or_default();
    };
    let mut read = |step: Vec<Map<String, Value>>| {
        let alone = step.len() == 1;
        step.into_iter()
            .map(|update| read_step(update, alone, body))
            .collect()
    };
    steps
        .into_iter()
        .filter(|step| !step.is_empty())
        .map(&mut read)
        .collect()
}

/// Reads an update of a step; its issues are issues of the body.
fn read_step(update: Map<String, Value>, alone: bool, body: &mut Fields) -> Update {
    let loc = || vec!["body".into(), "supersteps".into(), "updates".into()];
    let mut fields = Fields::new("body", update);
    fields.required_text("as_node");
    let mut read = read_update(&mut fields);
    if let Some(command) = fields
        .object("command")
        .filter(|command| !command.is_empty())
    {
        match NodeCommand::read(command) {
            Ok(NodeCommand { update, goto }) => {
                read = Update {
                    values: update,
                    goto,
                    ..read
                }
            }
            Err(issue) => body.push(*issue),
        }
    }
    if !alone && matches!(read.as_node.as_deref(), Some("__input__" | "__end__")) {
        body.push(Issue::new(
            "value_error",
            loc(),
            "updates as __input__ and as __end__ should stand alone in their superstep",
            &Value::Null,
        ));
    }
    read.as_node = read.as_node.map(|node| {
        if node == "__input__" {
            "__start__".to_owned()
        } else {
            node
        }
    });
    if let Err(ApiError::Invalid(issues)) = fields.finish() {
        issues.into_iter().for_each(|issue| body.push(issue));
    }
    read
}

/// Writes a checkpoint for each step and stores the request's key. If any of it fails, neither
/// thread nor key remains.
async fn seeded(
    state: Arc<GatewayState>,
    record: ThreadRecord,
    request: Option<RequestKey>,
    steps: Vec<Vec<Update>>,
    dialect: Dialect,
) -> Result<ThreadRecord, ApiError> {
    let created = seed(&state, &record, request.as_ref(), &steps, dialect).await;
    if created.is_err()
        && let Err(error) = state.threads.delete(&record.thread_id, &Owner::Auto).await
    {
        tracing::error!(thread_id = %record.thread_id, %error, "failed to delete a thread after its seeding failed");
    }
    created
}

async fn seed(
    state: &Arc<GatewayState>,
    record: &ThreadRecord,
    request: Option<&RequestKey>,
    steps: &[Vec<Update>],
    dialect: Dialect,
) -> Result<ThreadRecord, ApiError> {
    for step in steps {
        change_state(state, record, step, None, dialect).await?;
    }
    let seeded = require_thread(state, &record.thread_id).await?;
    let Some(key) = request else {
        return Ok(seeded);
    };
    match state
        .requests
        .keep(
            key,
            CreatedResource::Thread(record.thread_id.clone()),
            state.clock.now(),
        )
        .await
    {
        Ok(None) => Ok(seeded),
        // A concurrent retry was faster: its thread counts.
        Ok(Some(known)) => Err(ApiError::KnownRequest(known)),
        Err(error) => {
            // The key may be stored despite the error, and would refer to a removed thread.
            if let Err(error) = state.requests.forget(key).await {
                tracing::error!(thread_id = %record.thread_id, %error, "failed to remove the idempotency key of a thread after its seeding failed");
            }
            Err(error.into())
        }
    }
}
