//! `POST /threads`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use deerflow_domain::threads::{Created, NewThread, ThreadRecord};
use harness::runtime::actor_context::{Owner, required_user_id};
use harness::runtime::runs::DeletedThreads;
use harness::runtime::runs::store::{CreatedResource, RequestKey};
use serde_json::{Map, Value};

use super::client_metadata;
use super::options::read_ttl;
use super::update::Update;
use super::update_state::change_state;
use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};
use crate::extract::{Body, IdempotencyKey, Issues, parse_thread_id};
use crate::queries::threads::{require_thread, thread_facts};
use crate::requests::NodeCommand;
use crate::requests::bodies::{StepUpdate, ThreadCreate};
use crate::responses::{ThreadFacts, thread_json};
use crate::routes::idempotency::idempotent;
use crate::routes::{App, JsonResult, ResponseResult, run_to_completion};
use crate::state::GatewayState;

/// Maximum length of the name of a thread's assistant, in bytes.
const MAX_ASSISTANT_BYTES: usize = 128;

pub(crate) async fn create(
    State(state): App,
    dialect: Dialect,
    idempotency_key: IdempotencyKey,
    body: Body<ThreadCreate>,
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
    body: Body<ThreadCreate>,
    request: Option<RequestKey>,
) -> JsonResult {
    let (body, mut issues) = body.parts();
    let thread_id = match body.thread_id {
        Some(id) => parse_thread_id(&id, dialect, "body")?,
        None => state.process.ids.thread_id(),
    };
    let metadata = client_metadata(body.metadata.unwrap_or_default(), dialect);
    let assistant = issues
        .text("assistant_id", body.assistant_id)
        .filter(|_| !dialect.is_platform());
    let (keep_existing, mut ttl) = (!dialect.is_platform(), None);
    let keep_existing = body.if_exists.map_or(keep_existing, |word| word.0);
    if dialect.is_platform() {
        ttl = read_ttl(&body.ttl, &mut issues).or_else(|| state.info.thread_ttl());
    }
    let seed = read_supersteps(body.supersteps, &mut issues);
    if assistant
        .as_ref()
        .is_some_and(|assistant| assistant.len() > MAX_ASSISTANT_BYTES)
    {
        let text = format!("assistant_id should have at most {MAX_ASSISTANT_BYTES} bytes");
        issues.refuse::<()>("string_too_long", "assistant_id", text, &Value::Null);
    }
    issues.finish()?;
    let user_id = Some(required_user_id().map_err(|error| ApiError::Internal(error.to_string()))?);
    let at = state.process.clock.now();
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
    match state.thread_services.threads.create(new).await? {
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
fn read_supersteps(sent: Value, issues: &mut Issues) -> Vec<Vec<Update>> {
    if sent.is_null() {
        return Vec::new();
    }
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
        return issues
            .refuse("list_type", "supersteps", msg, &sent)
            .unwrap_or_default();
    };
    steps
        .into_iter()
        .enumerate()
        .filter(|(_, step)| !step.is_empty())
        .map(|(step_index, step)| {
            let alone = step.len() == 1;
            step.into_iter()
                .enumerate()
                .map(|(index, update)| {
                    let (update, own_issues) = read_step(update, alone);
                    let place = [
                        "supersteps".into(),
                        step_index.into(),
                        "updates".into(),
                        index.into(),
                    ];
                    issues.nest(own_issues, &place);
                    update
                })
                .collect()
        })
        .collect()
}

/// Reads an update of a step, with its issues.
fn read_step(update: Map<String, Value>, alone: bool) -> (Update, Issues) {
    let (step, mut issues) = Body::<StepUpdate>::new(update, Dialect::Platform).parts();
    let (mut values, mut goto) = (step.values.unwrap_or_default(), Vec::new());
    if let Some(command) = step.command.filter(|command| !command.is_empty()) {
        match NodeCommand::read(command) {
            Ok(command) => (values, goto) = (command.update, command.goto),
            Err(issue) => issues.push(*issue),
        }
    }
    let mut as_node = step.as_node;
    if !alone && matches!(as_node.as_str(), "__input__" | "__end__") {
        issues.push(Issue::new(
            "value_error",
            vec!["body".into()],
            "updates as __input__ and as __end__ should stand alone in their superstep",
            &Value::Null,
        ));
    }
    if as_node == "__input__" {
        "__start__".clone_into(&mut as_node);
    }
    let update = Update {
        values,
        as_node: Some(as_node),
        goto,
        ..Update::default()
    };
    (update, issues)
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
    let created = seed(&state, &record, request.as_ref(), steps, dialect).await;
    if created.is_err() {
        let thread = &record.thread_id;
        let deleted = state.thread_services.threads.delete(thread, &Owner::Auto);
        if let Err(error) = deleted.await {
            tracing::error!(thread_id = %thread, %error, "failed to delete a thread after its seeding failed");
        }
        let deleted_threads = DeletedThreads::new(state.runs.runtime());
        deleted_threads.release([thread], &[]).await;
    }
    created
}

async fn seed(
    state: &Arc<GatewayState>,
    record: &ThreadRecord,
    request: Option<&RequestKey>,
    steps: Vec<Vec<Update>>,
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
        .run_services
        .requests
        .keep(
            key,
            CreatedResource::Thread(record.thread_id.clone()),
            state.process.clock.now(),
        )
        .await
    {
        Ok(None) => Ok(seeded),
        // A concurrent retry was faster: its thread counts.
        Ok(Some(known)) => Err(ApiError::KnownRequest(known)),
        Err(error) => {
            // The key may be stored despite the error, and would refer to a removed thread.
            if let Err(error) = state.run_services.requests.forget(key).await {
                tracing::error!(thread_id = %record.thread_id, %error, "failed to remove the idempotency key of a thread after its seeding failed");
            }
            Err(error.into())
        }
    }
}
