//! `PATCH /threads/{t}`: merges metadata one level deep, also while a run is active.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use deerflow_domain::threads::ThreadPatch;
use harness::runtime::actor_context::Owner;

use super::client_metadata;
use super::options::read_ttl;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids};
use crate::queries::threads::thread_facts;
use crate::requests::bodies;
use crate::responses::{ThreadFacts, thread_json};
use crate::routes::{App, ResponseResult};

pub(crate) async fn patch(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    headers: HeaderMap,
    body: Body<bodies::ThreadPatch>,
) -> ResponseResult {
    let thread = ids.thread()?;
    let (body, mut issues) = body.parts();
    let metadata = client_metadata(body.metadata.unwrap_or_default(), dialect);
    let ttl = read_ttl(&body.ttl, &mut issues);
    issues.finish()?;
    // Pinning does not change the thread's update time.
    let touch = ttl.is_some() || metadata.keys().any(|key| key != "deerflow_pinned");
    let patch = ThreadPatch {
        metadata,
        ttl,
        touch,
        max_metadata_bytes: Some(state.info.field_limits().max_metadata_bytes),
        ..ThreadPatch::default()
    };
    let patched = state
        .thread_services
        .threads
        .patch(&thread, patch, &Owner::Auto, state.process.clock.now())
        .await?;
    let record = patched.ok_or_else(|| ApiError::ThreadNotFound(thread.to_string()))?;
    if headers
        .get("prefer")
        .is_some_and(|prefer| prefer == "return=minimal")
    {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let facts = if dialect.is_platform() {
        thread_facts(&state, &record, dialect).await?
    } else {
        ThreadFacts::default()
    };
    Ok(Json(thread_json(&record, facts, dialect)).into_response())
}
