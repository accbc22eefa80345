//! `GET /threads/{t}/state`, also at a checkpoint, and `PATCH` of its metadata.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use harness::ids::{CheckpointId, ThreadId};
use serde_json::Value;

use super::client_metadata;
use super::update_state::refused;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids, Query};
use crate::queries::threads::{
    SnapshotKind, messages, nested_state, newest_state, require_thread, successor,
};
use crate::requests::{checkpoint_of, nested_of};
use crate::responses::{RawView, StateView, empty_state_json, state_json, values_json};
use crate::routes::{App, JsonResult, ResponseResult};
use crate::state::GatewayState;

/// Returns the newest state.
pub(crate) async fn state(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
) -> ResponseResult {
    let thread = ids.thread()?;
    let subgraphs = subgraphs(&query, dialect)?;
    if !dialect.is_platform() {
        return Ok(
            Json(state_of(&state, &thread, None, &StateView::of(dialect)).await?).into_response(),
        );
    }
    require_thread(&state, &thread).await?;
    let newest = newest_state(&state, &thread, subgraphs).await?;
    Ok(
        Json(
            newest.unwrap_or_else(|| RawView::new(empty_state_json(&thread, None, dialect), None)),
        )
        .into_response(),
    )
}

/// Returns the state at the checkpoint in the path.
pub(crate) async fn at(State(state): App, dialect: Dialect, ids: Ids, query: Query) -> JsonResult {
    let thread = ids.thread()?;
    let view = StateView {
        subgraphs: subgraphs(&query, dialect)?,
        ..StateView::of(dialect)
    };
    let checkpoint = ids.checkpoint()?;
    Ok(Json(
        state_of(&state, &thread, Some(&checkpoint), &view).await?,
    ))
}

/// Returns the state at the checkpoint in the body.
pub(crate) async fn at_body(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    Body(mut body): Body,
) -> JsonResult {
    let thread = ids.thread()?;
    let mut view = StateView::of(dialect);
    if dialect.is_platform() {
        if body.value("checkpoint").is_none() {
            body.missing("checkpoint");
        }
        view.subgraphs = body.flag("subgraphs").unwrap_or_default();
    }
    let reference = checkpoint_of(&mut body, Some(&thread), dialect)?;
    let nested = if dialect.is_platform() {
        nested_of(&mut body, reference.as_ref())
    } else {
        None
    };
    body.finish()?;
    let checkpoint = reference.map(|reference| reference.checkpoint_id);
    if let Some(nested) = nested {
        require_thread(&state, &thread).await?;
        let nested_json = nested_state(&state, &thread, &nested, view.subgraphs).await?;
        return Ok(Json(nested_json.unwrap_or_else(|| {
            empty_state_json(&thread, checkpoint.as_ref(), dialect)
        })));
    }
    Ok(Json(
        state_of(&state, &thread, checkpoint.as_ref(), &view).await?,
    ))
}

/// Merges metadata into the newest checkpoint, one level deep.
pub(crate) async fn patch_state(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    Body(mut body): Body,
) -> ResponseResult {
    let thread = ids.thread()?;
    if body.value("metadata").is_none() {
        body.missing("metadata");
    }
    let metadata = client_metadata(body.object("metadata").unwrap_or_default(), dialect);
    body.finish()?;
    require_thread(&state, &thread).await?;
    if state
        .checkpoints
        .patch_metadata(&thread, metadata)
        .await
        .map_err(refused)?
    {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(ApiError::NotFound(format!(
            "Thread '{thread}' has no checkpoint yet"
        )))
    }
}

/// `true` if the states of nested agents in pending calls are requested and the dialect supports
/// it.
fn subgraphs(query: &Query, dialect: Dialect) -> Result<bool, ApiError> {
    Ok(dialect.is_platform() && query.flag("subgraphs")?.unwrap_or_default())
}

/// Returns the JSON of a state.
pub(crate) async fn state_of(
    state: &GatewayState,
    thread: &ThreadId,
    checkpoint: Option<&CheckpointId>,
    view: &StateView,
) -> Result<Value, ApiError> {
    let dialect = view.dialect;
    require_thread(state, thread).await?;
    let Some(snapshot) = state.checkpoints.get(thread, checkpoint).await? else {
        return match checkpoint {
            Some(id) if !dialect.is_platform() => Err(ApiError::CheckpointNotFound(id.to_string())),
            requested => Ok(empty_state_json(thread, requested, dialect)),
        };
    };
    let kind = if checkpoint.is_some() {
        SnapshotKind::Past
    } else {
        SnapshotKind::Newest
    };
    let messages = messages(state, &snapshot, kind, dialect).await?;
    let successor = if kind == SnapshotKind::Past {
        successor(state, &snapshot, dialect).await?
    } else {
        None
    };
    Ok(state_json(
        &snapshot,
        values_json(&snapshot, messages),
        successor.as_ref(),
        view,
    ))
}
