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
use crate::input::{before_cursor, checkpoint_of, nested_of};
use crate::reads::{Moment, messages, nested_state, newest_state, require_thread, successor};
use crate::routes::{App, Reply};
use crate::state::GatewayState;
use crate::wire::{Shown, StateView, history_entry_json, state_json, values_json};

/// `GET`: `limit` and `before` in the query.
pub(crate) async fn by_query(State(state): App, dialect: Dialect, ids: Ids, query: Query) -> Reply {
    let thread = ids.thread()?;
    let limit = query
        .number("limit", 1..=dialect.history_most())?
        .unwrap_or_else(|| dialect.history_limit());
    let before = match query.get("before") {
        Some(text) => Some(cursor(&Value::from(text), "query", dialect)?),
        None => None,
    };
    let asked = HistoryQuery {
        limit: limit as usize,
        before,
        metadata: Map::new(),
    };
    history(&state, &thread, asked, None, dialect).await
}

/// `POST`: the same in the body, with filters.
pub(crate) async fn by_body(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    OptionalBody(mut body): OptionalBody,
) -> Reply {
    let thread = ids.thread()?;
    let limit = body
        .number("limit", 1..=dialect.history_most())
        .unwrap_or_else(|| dialect.history_limit());
    let before = match body.value("before") {
        Some(value) => Some(cursor(value, "body", dialect)?),
        None => None,
    };
    let (metadata, from, nested) = match dialect {
        Dialect::DeerFlow => (Map::new(), None, None),
        Dialect::Platform => {
            let from = checkpoint_of(&mut body, Some(&thread), dialect)?;
            let nested = nested_of(&mut body, from.as_ref());
            (
                body.object("metadata").unwrap_or_default(),
                from.map(|reference| reference.checkpoint_id),
                nested,
            )
        }
    };
    body.finish()?;
    if let Some(nested) = nested {
        require_thread(&state, &thread).await?;
        // Of its history the newest is kept.
        let kept: Vec<Value> = nested_state(&state, &thread, &nested, false)
            .await?
            .into_iter()
            .collect();
        return Ok(Json(kept).into_response());
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

/// The platform's checkpoints go by UUIDs.
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
) -> Reply {
    if state.threads.get(thread, &Owner::Auto).await?.is_none() {
        return match dialect {
            Dialect::DeerFlow => Ok(Json(json!([])).into_response()),
            Dialect::Platform => Err(ApiError::ThreadNotFound(thread.to_string())),
        };
    }
    let newest = query.before.is_none() && query.metadata.is_empty() && from.is_none();
    let limit = query.limit;
    if newest && limit == 1 && dialect.is_platform() {
        let only: Vec<Shown> = newest_state(state, thread, false)
            .await?
            .into_iter()
            .collect();
        return Ok(Json(only).into_response());
    }
    let mut snapshots = match &from {
        Some(from) => state
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
        snapshots.extend(state.checkpoints.list(thread, &rest).await?);
    }
    let mut entries = Vec::with_capacity(snapshots.len());
    for (index, snapshot) in snapshots.iter().enumerate() {
        let moment = if newest && index == 0 {
            Moment::Newest
        } else {
            Moment::Past
        };
        entries.push(match dialect {
            Dialect::DeerFlow => deerflow_entry(state, snapshot, index == 0, moment).await?,
            // Each checkpoint as it was written: it is what forks start from.
            Dialect::Platform => {
                let values =
                    values_json(snapshot, messages(state, snapshot, moment, dialect).await?);
                let follows = |later: &&Snapshot| {
                    later.meta.parent_id.as_ref() == Some(&snapshot.meta.checkpoint_id)
                };
                let asked = if index == 0 && moment == Moment::Past {
                    successor(state, snapshot, dialect).await?
                } else {
                    None
                };
                state_json(
                    snapshot,
                    values,
                    snapshots[..index].iter().rfind(follows).or(asked.as_ref()),
                    &StateView::of(dialect),
                )
            }
        });
    }
    Ok(Json(Value::Array(entries)).into_response())
}

/// Channels in every entry of DeerFlow's history.
const ENTRY_CHANNELS: &[&str] = &["title", "thread_data"];
/// Channels in its first entry besides. The web UI takes that entry as the thread's state after a reload and after each run.
const FIRST_ENTRY_CHANNELS: &[&str] = &["artifacts", "todos", "goal", "background_tasks"];

/// DeerFlow's history carries messages in its first entry only: the web UI's transcript, compacted messages included.
async fn deerflow_entry(
    state: &GatewayState,
    snapshot: &Snapshot,
    first: bool,
    moment: Moment,
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
            messages(state, snapshot, moment, Dialect::DeerFlow)
                .await?
                .into(),
        );
    }
    Ok(history_entry_json(&snapshot.meta, values.into()))
}
