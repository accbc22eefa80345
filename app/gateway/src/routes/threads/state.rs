//! `GET /threads/{t}/state`, also at a checkpoint, and `PATCH`, which is about its metadata.

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
use crate::input::{checkpoint_of, nested_of};
use crate::reads::{Moment, messages, nested_state, newest_state, require_thread, successor};
use crate::routes::{Answer, App, Reply};
use crate::state::GatewayState;
use crate::wire::{Shown, StateView, empty_state_json, state_json, values_json};

/// The newest state.
pub(crate) async fn state(State(state): App, dialect: Dialect, ids: Ids, query: Query) -> Reply {
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
        Json(newest.unwrap_or_else(|| Shown::new(empty_state_json(&thread, None, dialect), None)))
            .into_response(),
    )
}

/// The state at the checkpoint in the path.
pub(crate) async fn at(State(state): App, dialect: Dialect, ids: Ids, query: Query) -> Answer {
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

/// The state at the checkpoint in the body.
pub(crate) async fn at_body(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    Body(mut body): Body,
) -> Answer {
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
        let found = nested_state(&state, &thread, &nested, view.subgraphs).await?;
        return Ok(Json(found.unwrap_or_else(|| {
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
) -> Reply {
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

/// Whether the states of agents inside of due calls are wanted, where the dialect has them.
fn subgraphs(query: &Query, dialect: Dialect) -> Result<bool, ApiError> {
    Ok(dialect.is_platform() && query.flag("subgraphs")?.unwrap_or_default())
}

/// The state's JSON.
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
            asked => Ok(empty_state_json(thread, asked, dialect)),
        };
    };
    let moment = if checkpoint.is_some() {
        Moment::Past
    } else {
        Moment::Newest
    };
    let messages = messages(state, &snapshot, moment, dialect).await?;
    let successor = if moment == Moment::Past {
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
