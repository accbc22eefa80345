//! `GET /threads/{t}/state`, also at a checkpoint, and `PATCH` of its metadata.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use harness::ids::{CheckpointId, ThreadId};
use harness::runtime::checkpoint::Snapshot;
use serde_json::Value;

use super::client_metadata;
use super::update::refused;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids, Query, missing_issue};
use crate::queries::threads::{
    SnapshotKind, messages, nested_state, newest_state, require_thread, successor,
};
use crate::requests::bodies::{StateAt, StatePatch};
use crate::requests::{NamedCheckpoint, checkpoint_of, nested_of};
use crate::responses::{LargeJson, RawView, StateView, empty_state_json, state_json, values_json};
use crate::routes::{App, ResponseResult};
use crate::state::GatewayState;

type StateResult = Result<LargeJson<Value>, ApiError>;

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
            LargeJson(state_of(&state, &thread, None, &StateView::of(dialect)).await?)
                .into_response(),
        );
    }
    require_thread(&state, &thread).await?;
    let newest = newest_state(&state, &thread, subgraphs).await?;
    Ok(LargeJson(
        newest.unwrap_or_else(|| RawView::new(empty_state_json(&thread, None, dialect), None)),
    )
    .into_response())
}

/// Returns the state at the checkpoint in the path.
pub(crate) async fn at(State(state): App, dialect: Dialect, ids: Ids, query: Query) -> StateResult {
    let thread = ids.thread()?;
    let view = StateView {
        subgraphs: subgraphs(&query, dialect)?,
        ..StateView::of(dialect)
    };
    let checkpoint = ids.checkpoint()?;
    Ok(LargeJson(
        state_of(&state, &thread, Some(&checkpoint), &view).await?,
    ))
}

/// Returns the state at the checkpoint in the body.
pub(crate) async fn at_body(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    body: Body<StateAt>,
) -> StateResult {
    let thread = ids.thread()?;
    let is_missing = body.map().get("checkpoint").is_none_or(Value::is_null);
    let missing =
        (dialect.is_platform() && is_missing).then(|| missing_issue("checkpoint", body.map()));
    let (body, mut issues) = body.parts();
    missing.into_iter().for_each(|issue| issues.push(issue));
    let view = StateView {
        subgraphs: body.subgraphs.unwrap_or_default(),
        ..StateView::of(dialect)
    };
    let object = issues.object("checkpoint", body.checkpoint);
    let id = issues.text("checkpoint_id", body.checkpoint_id);
    let named = NamedCheckpoint {
        object: object.as_ref(),
        id: id.as_deref(),
    };
    let reference = checkpoint_of(named, &mut issues, Some(&thread), dialect)?;
    let nested = if dialect.is_platform() {
        nested_of(object.as_ref(), &mut issues, reference.as_ref())
    } else {
        None
    };
    issues.finish()?;
    let checkpoint = reference.map(|reference| reference.checkpoint_id);
    if let Some(nested) = nested {
        require_thread(&state, &thread).await?;
        let nested_json = nested_state(&state, &thread, &nested, view.subgraphs).await?;
        return Ok(LargeJson(nested_json.unwrap_or_else(|| {
            empty_state_json(&thread, checkpoint.as_ref(), dialect)
        })));
    }
    Ok(LargeJson(
        state_of(&state, &thread, checkpoint.as_ref(), &view).await?,
    ))
}

/// Merges metadata into the newest checkpoint, one level deep.
pub(crate) async fn patch_state(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    body: Body<StatePatch>,
) -> ResponseResult {
    let thread = ids.thread()?;
    let metadata = client_metadata(body.valid()?.metadata, dialect);
    require_thread(&state, &thread).await?;
    let limit = state.info.field_limits().max_metadata_bytes;
    if state
        .thread_services
        .checkpoints
        .patch_metadata(&thread, metadata, Some(limit))
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
    require_thread(state, thread).await?;
    let Some(snapshot) = state
        .thread_services
        .checkpoints
        .get(thread, checkpoint)
        .await?
    else {
        return match checkpoint {
            Some(id) if !view.dialect.is_platform() => {
                Err(ApiError::CheckpointNotFound(id.to_string()))
            }
            requested => Ok(empty_state_json(thread, requested, view.dialect)),
        };
    };
    let kind = if checkpoint.is_some() {
        SnapshotKind::Past
    } else {
        SnapshotKind::Newest
    };
    snapshot_json(state, &snapshot, kind, view).await
}

/// Returns the JSON of a snapshot.
pub(super) async fn snapshot_json(
    state: &GatewayState,
    snapshot: &Snapshot,
    kind: SnapshotKind,
    view: &StateView,
) -> Result<Value, ApiError> {
    let messages = messages(state, snapshot, kind, view.dialect).await?;
    let successor = if kind == SnapshotKind::Past {
        successor(state, snapshot, view.dialect).await?
    } else {
        None
    };
    Ok(state_json(
        snapshot,
        values_json(snapshot, messages),
        successor.as_ref(),
        view,
    ))
}
