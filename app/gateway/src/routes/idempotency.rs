//! Idempotent requests: a client sends an `Idempotency-Key`, and a retry gets the first response
//! instead of a second resource.

use std::future::Future;

use axum::http::HeaderValue;
use axum::response::Response;
use harness::runtime::fail_points;
use harness::runtime::runs::store::{CreatedResource, KeyState, RequestKey};

use super::ResponseResult;
use crate::error::ApiError;
use crate::extract::REPLAYED;
use crate::state::GatewayState;

/// Returns the resource that an earlier request with this key created.
pub(crate) async fn find_created(
    state: &GatewayState,
    key: Option<&RequestKey>,
) -> Result<Option<CreatedResource>, ApiError> {
    let Some(key) = key else { return Ok(None) };
    let known = state
        .run_services
        .requests
        .known(key, state.process.clock.now())
        .await?;
    known.map(created_by).transpose()
}

/// Returns the resource that a known key created; rejects a key that was used for a different
/// request.
pub(crate) fn created_by(known: KeyState) -> Result<CreatedResource, ApiError> {
    match known {
        KeyState::Again(created) => Ok(created),
        KeyState::Other => Err(ApiError::Unprocessable(
            "Idempotency-Key: it was used for another request".to_owned(),
        )),
    }
}

/// Runs `create`, or answers a retry with `replay` of the resource that the first request created.
pub(crate) async fn idempotent<A: Future<Output = ResponseResult>>(
    state: &GatewayState,
    key: Option<&RequestKey>,
    create: impl Future<Output = ResponseResult>,
    replay: impl FnOnce(CreatedResource) -> A,
) -> ResponseResult {
    let created = match find_created(state, key).await? {
        Some(created) => created,
        None => match create.await {
            // A concurrent request with the same key was faster.
            Err(ApiError::KnownRequest(known)) => created_by(known)?,
            other => {
                fail_points::pass("request.made");
                return other;
            }
        },
    };
    replay(created).await.map(mark_replayed)
}

/// Marks a response as replayed.
pub(crate) fn mark_replayed(mut response: Response) -> Response {
    response
        .headers_mut()
        .insert(REPLAYED, HeaderValue::from_static("true"));
    response
}
