//! `/threads/{t}/history`: snapshots, newest first.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use harness::ids::{CheckpointId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::checkpoint::{HistoryQuery, Snapshot};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};
use crate::extract::{Ids, OptionalBody, Query};
use crate::queries::threads::{
    SnapshotKind, messages, nested_state, newest_state, require_thread, successor,
};
use crate::requests::bodies::HistorySearch;
use crate::requests::{NamedCheckpoint, before_cursor, checkpoint_of, nested_of};
use crate::responses::{JsonList, RawView, StateView, history_entry_json, state_json, values_json};
use crate::routes::{App, ResponseResult};
use crate::state::GatewayState;

/// `GET`: `limit` and `before` in the query.
pub(crate) async fn by_query(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
) -> ResponseResult {
    let thread = ids.thread()?;
    let limit = query
        .number("limit", 1..=dialect.max_history_limit())?
        .unwrap_or_else(|| dialect.history_limit());
    let before = match query.get("before") {
        Some(text) => Some(cursor(&Value::from(text), "query", dialect)?),
        None => None,
    };
    let requested = HistoryQuery {
        limit: limit as usize,
        before,
        metadata: Map::new(),
    };
    history(&state, &thread, requested, None, dialect).await
}

/// `POST`: the same in the body, with additional filters.
pub(crate) async fn by_body(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    OptionalBody(body): OptionalBody<HistorySearch>,
) -> ResponseResult {
    let thread = ids.thread()?;
    let (body, mut issues) = body.parts();
    let limit = issues
        .number("limit", &body.limit, 1..=dialect.max_history_limit())
        .unwrap_or_else(|| dialect.history_limit());
    let before = match &body.before {
        Value::Null => None,
        value => Some(cursor(value, "body", dialect)?),
    };
    let (metadata, from, nested) = match dialect {
        Dialect::DeerFlow => (Map::new(), None, None),
        Dialect::Platform => {
            let id = issues.text("checkpoint_id", body.checkpoint_id);
            let named = NamedCheckpoint {
                object: body.checkpoint.as_ref(),
                id: id.as_deref(),
            };
            let from = checkpoint_of(named, &mut issues, Some(&thread), dialect)?;
            let nested = nested_of(body.checkpoint.as_ref(), &mut issues, from.as_ref());
            (
                body.metadata.unwrap_or_default(),
                from.map(|reference| reference.checkpoint_id),
                nested,
            )
        }
    };
    issues.finish()?;
    if let Some(nested) = nested {
        require_thread(&state, &thread).await?;
        // Only the newest entry of a nested history is stored.
        let entries: Vec<Value> = nested_state(&state, &thread, &nested, false)
            .await?
            .into_iter()
            .collect();
        return Ok(Json(entries).into_response());
    }
    history(
        &state,
        &thread,
        HistoryQuery {
            limit: limit as usize,
            before,
            metadata,
        },
        from,
        dialect,
    )
    .await
}

/// Reads a cursor, which must be a UUID on the platform.
fn cursor(value: &Value, source: &'static str, dialect: Dialect) -> Result<CheckpointId, ApiError> {
    let is_id = |id: &CheckpointId| !dialect.is_platform() || Uuid::parse_str(id.as_str()).is_ok();
    before_cursor(value).filter(is_id).ok_or_else(|| {
        let loc = vec![source.into(), "before".into()];
        ApiError::issue(Issue::new(
            "value_error",
            loc,
            "before should be a checkpoint id, or an object that holds one",
            value,
        ))
    })
}

async fn history(
    state: &GatewayState,
    thread: &ThreadId,
    query: HistoryQuery,
    from: Option<CheckpointId>,
    dialect: Dialect,
) -> ResponseResult {
    if state
        .thread_services
        .threads
        .get(thread, &Owner::Auto)
        .await?
        .is_none()
    {
        return match dialect {
            Dialect::DeerFlow => Ok(Json(json!([])).into_response()),
            Dialect::Platform => Err(ApiError::ThreadNotFound(thread.to_string())),
        };
    }
    let newest = query.before.is_none() && query.metadata.is_empty() && from.is_none();
    let limit = query.limit;
    if newest && limit == 1 && dialect.is_platform() {
        let only: Vec<RawView> = newest_state(state, thread, false)
            .await?
            .into_iter()
            .collect();
        return Ok(Json(only).into_response());
    }
    let mut snapshots = match &from {
        Some(from) => state
            .thread_services
            .checkpoints
            .get(thread, Some(from))
            .await?
            .into_iter()
            .collect(),
        None => Vec::new(),
    };
    let rest = HistoryQuery {
        limit: limit - snapshots.len(),
        before: query.before.or(from),
        ..query
    };
    if rest.limit > 0 {
        snapshots.extend(
            state
                .thread_services
                .checkpoints
                .list(thread, &rest)
                .await?,
        );
    }
    let mut answer = JsonList::default();
    for (index, snapshot) in snapshots.iter().enumerate() {
        let kind = if newest && index == 0 {
            SnapshotKind::Newest
        } else {
            SnapshotKind::Past
        };
        let entry = match dialect {
            Dialect::DeerFlow => deerflow_entry(state, snapshot, index == 0, kind).await?,
            // The platform returns each checkpoint as it was written, because forks start from it.
            Dialect::Platform => {
                let values = values_json(snapshot, messages(state, snapshot, kind, dialect).await?);
                let follows = |later: &&Snapshot| {
                    later.meta.parent_id.as_ref() == Some(&snapshot.meta.checkpoint_id)
                };
                let requested = if index == 0 && kind == SnapshotKind::Past {
                    successor(state, snapshot, dialect).await?
                } else {
                    None
                };
                state_json(
                    snapshot,
                    values,
                    snapshots[..index]
                        .iter()
                        .rfind(follows)
                        .or(requested.as_ref()),
                    &StateView::of(dialect),
                )
            }
        };
        let pushed = answer.push(&entry);
        pushed.map_err(|error| ApiError::Internal(error.to_string()))?;
        if answer.is_full() && index + 1 < snapshots.len() {
            return Ok(answer.into_page(snapshot.meta.checkpoint_id.as_str()));
        }
    }
    Ok(answer.into_response())
}

/// Channels in every entry of DeerFlow's history.
const ENTRY_CHANNELS: &[&str] = &["title", "thread_data"];
/// Additional channels of its first entry. The web UI takes that entry as the thread's state after
/// a reload and after each run.
const FIRST_ENTRY_CHANNELS: &[&str] = &["artifacts", "todos", "goal", "background_tasks"];

/// Returns an entry of DeerFlow's history. Only the first entry has messages: the web UI's
/// transcript, including compacted messages.
async fn deerflow_entry(
    state: &GatewayState,
    snapshot: &Snapshot,
    first: bool,
    kind: SnapshotKind,
) -> Result<Value, ApiError> {
    let channels = snapshot.state.channels();
    let names = ENTRY_CHANNELS
        .iter()
        .chain(if first { FIRST_ENTRY_CHANNELS } else { &[] });
    let mut values: Map<String, Value> = names
        .filter_map(|&name| Some((name.to_owned(), channels.get(name)?.clone())))
        .collect();
    if first {
        values.insert(
            "messages".to_owned(),
            messages(state, snapshot, kind, Dialect::DeerFlow)
                .await?
                .into(),
        );
    }
    Ok(history_entry_json(&snapshot.meta, values.into()))
}
