//! `/threads/{t}/history`: snapshots, newest first.

use axum::Json;
use axum::extract::State;
use harness::ids::{CheckpointId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::checkpoint::{HistoryQuery, Snapshot};
use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
use crate::error::{ApiError, Issue};
use crate::extract::{Ids, OptionalBody, Query};
use crate::history::{annotate, durations};
use crate::input::{before_cursor, checkpoint_of};
use crate::reads::{Moment, all_runs, transcript};
use crate::routes::{Answer, App};
use crate::state::GatewayState;
use crate::wire::{history_entry_json, state_json, values_json};

/// The most snapshots of one answer.
const LIMIT: u64 = 1000;

/// `GET`: `limit` and `before` in the query.
pub(crate) async fn by_query(State(state): App, dialect: Dialect, ids: Ids, query: Query) -> Answer {
    let thread = ids.thread()?;
    let limit = query.number("limit", 1..=LIMIT)?.unwrap_or_else(|| dialect.history_limit());
    let before = match query.get("before") {
        Some(text) => Some(cursor(&Value::from(text), "query")?),
        None => None,
    };
    let asked = HistoryQuery { limit: limit as usize, before, metadata: Map::new() };
    history(&state, &thread, asked, None, dialect).await
}

/// `POST`: the same in the body, with filters.
pub(crate) async fn by_body(State(state): App, dialect: Dialect, ids: Ids, OptionalBody(mut body): OptionalBody) -> Answer {
    let thread = ids.thread()?;
    let limit = body.number("limit", 1..=LIMIT).unwrap_or_else(|| dialect.history_limit());
    let before = match body.value("before") {
        Some(value) => Some(cursor(value, "body")?),
        None => None,
    };
    let (metadata, from) = match dialect {
        Dialect::DeerFlow => (Map::new(), None),
        Dialect::Platform => {
            let from = checkpoint_of(&mut body, Some(&thread), dialect)?;
            (body.object("metadata").unwrap_or_default(), from.map(|reference| reference.checkpoint_id))
        }
    };
    body.finish()?;
    history(&state, &thread, HistoryQuery { limit: limit as usize, before, metadata }, from, dialect).await
}

fn cursor(value: &Value, source: &'static str) -> Result<CheckpointId, ApiError> {
    before_cursor(value).ok_or_else(|| {
        let loc = vec![source.into(), "before".into()];
        ApiError::issue(Issue::new("value_error", loc, "before should be a checkpoint id, or an object that holds one", value))
    })
}

async fn history(state: &GatewayState, thread: &ThreadId, query: HistoryQuery, from: Option<CheckpointId>, dialect: Dialect) -> Answer {
    if state.threads.get(thread, &Owner::Auto).await?.is_none() {
        return match dialect {
            Dialect::DeerFlow => Ok(Json(json!([]))),
            Dialect::Platform => Err(ApiError::ThreadNotFound(thread.to_string())),
        };
    }
    let newest = query.before.is_none() && query.metadata.is_empty() && from.is_none();
    let limit = query.limit;
    let mut snapshots = match &from {
        Some(from) => state.checkpoints.get(thread, Some(from)).await?.into_iter().collect(),
        None => Vec::new(),
    };
    let rest = HistoryQuery { limit: limit - snapshots.len(), before: query.before.or(from), ..query };
    if rest.limit > 0 {
        snapshots.extend(state.checkpoints.list(thread, &rest).await?);
    }
    let entries = match dialect {
        Dialect::DeerFlow => deerflow_entries(state, thread, &snapshots, newest).await?,
        Dialect::Platform => snapshots.iter().map(platform_entry).collect(),
    };
    Ok(Json(Value::Array(entries)))
}

/// The platform's history shows each checkpoint as it was written; it is what forks start from.
fn platform_entry(snapshot: &Snapshot) -> Value {
    let messages = snapshot.state.messages().iter().map(|message| json!(message.json())).collect();
    state_json(snapshot, values_json(snapshot, messages), Dialect::Platform)
}

/// DeerFlow's history carries messages in its first entry only: the web UI's transcript, compacted messages included.
async fn deerflow_entries(state: &GatewayState, thread: &ThreadId, snapshots: &[Snapshot], newest: bool) -> Result<Vec<Value>, ApiError> {
    let runs = if snapshots.is_empty() { Vec::new() } else { all_runs(state, thread).await? };
    let mut entries = Vec::with_capacity(snapshots.len());
    for (index, snapshot) in snapshots.iter().enumerate() {
        let channels = snapshot.state.channels();
        let kept = ["title", "thread_data"].into_iter().filter_map(|name| Some((name.to_owned(), channels.get(name)?.clone())));
        let mut values: Map<String, Value> = kept.collect();
        if index == 0 {
            let moment = if newest { Moment::Newest } else { Moment::Past };
            let mut messages = transcript(state, snapshot, moment, &runs).await?;
            annotate(&mut messages, &durations(&runs));
            values.insert("messages".to_owned(), messages.into());
        }
        entries.push(history_entry_json(&snapshot.meta, values.into()));
    }
    Ok(entries)
}
