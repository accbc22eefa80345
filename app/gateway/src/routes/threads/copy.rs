//! `POST /threads/{t}/copy`: the same metadata and history under a new id.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use deerflow_domain::threads::{Created, NewThread, ThreadPatch, ThreadRecord};
use harness::runtime::actor_context::Owner;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::Ids;
use crate::queries::threads::{require_thread, thread_facts};
use crate::responses::thread_json;
use crate::routes::{App, JsonResult, run_to_completion};
use crate::state::GatewayState;

pub(crate) async fn copy(State(state): App, dialect: Dialect, ids: Ids) -> JsonResult {
    let source = match require_thread(&state, &ids.thread()?).await {
        Err(ApiError::ThreadNotFound(_)) if dialect.is_platform() => {
            return Err(ApiError::Conflict("Conflict".to_owned()));
        }
        other => other?,
    };
    let copy =
        run_to_completion(&state, "copy a thread", copied(Arc::clone(&state), source)).await?;
    let facts = thread_facts(&state, &copy, dialect).await?;
    Ok(Json(thread_json(&copy, facts, dialect)))
}

async fn copied(state: Arc<GatewayState>, source: ThreadRecord) -> Result<ThreadRecord, ApiError> {
    let new = NewThread {
        thread_id: state.process.ids.thread_id(),
        user_id: source.user_id.clone(),
        assistant: source.assistant.clone(),
        assistant_id: source.assistant_id.clone(),
        metadata: source.metadata.clone(),
        ttl: source.ttl,
        request: None,
        at: state.process.clock.now(),
    };
    let Created::New(copy) = state.thread_services.threads.create(new).await? else {
        return Err(ApiError::Internal(
            "a new thread id is already taken".to_owned(),
        ));
    };
    state
        .thread_services
        .checkpoints
        .copy_thread(&source.thread_id, &copy.thread_id)
        .await?;
    let patch = ThreadPatch {
        title: source.title.map(Some),
        ..ThreadPatch::default()
    };
    let patched = state
        .thread_services
        .threads
        .patch(&copy.thread_id, patch, &Owner::Auto, copy.created_at)
        .await?;
    Ok(patched.unwrap_or(copy))
}
