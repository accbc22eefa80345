//! Queries shared by several routes: a thread's row, its runs and its transcript.

use std::collections::HashSet;

use deerflow_domain::threads::{LastEnd, ThreadContent, ThreadRecord};
use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::checkpoint::{CheckpointMeta, HistoryQuery, Snapshot, nested_at};
use harness::runtime::runs::store::{EventQuery, RunEvent, RunListQuery, category};
use harness::runtime::runs::{RunRecord, ThreadStatus};
use harness::runtime::threads::pending_interrupts;
use harness::state::ThreadState;
use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::queries::history::{self, Hidden, MESSAGE_REMOVED};
use crate::requests::NestedRef;
use crate::responses::{
    RawView, StateView, ThreadFacts, end_error_json, is_rolled_back, state_json, values_json,
};
use crate::state::GatewayState;

/// Maximum number of checkpoints scanned for the successor of another.
const MAX_SCANNED_CHECKPOINTS: usize = 1_000;
/// Page size of complete reads.
const PAGE: usize = 500;
/// Number of newest runs that are searched for an ended one. Greater than the limit of the queue,
/// so that not all of them can be unfinished.
const NEWEST_RUNS: usize = 20;

/// Returns the thread, if it belongs to the actor.
pub(crate) async fn require_thread(
    state: &GatewayState,
    thread: &ThreadId,
) -> Result<ThreadRecord, ApiError> {
    let existing = state
        .thread_services
        .threads
        .get(thread, &Owner::Auto)
        .await?;
    existing.ok_or_else(|| ApiError::ThreadNotFound(thread.to_string()))
}

/// Returns the run, if it belongs to the thread and is visible in the dialect.
pub(crate) async fn require_run(
    state: &GatewayState,
    thread: &ThreadId,
    run: &RunId,
    dialect: Dialect,
) -> Result<RunRecord, ApiError> {
    let existing = state.runs.get_run(Some(thread), run).await?;
    existing
        .filter(|run| !(dialect.is_platform() && is_rolled_back(run)))
        .ok_or_else(|| ApiError::RunNotFound(run.to_string()))
}

/// Returns the run, if it belongs to the actor.
pub(crate) async fn require_any_run(
    state: &GatewayState,
    run: &RunId,
) -> Result<RunRecord, ApiError> {
    let existing = state.runs.get_run(None, run).await?;
    existing.ok_or_else(|| ApiError::RunNotFound(run.to_string()))
}

/// Returns all runs of a thread, newest first.
pub(crate) async fn all_runs(
    state: &GatewayState,
    thread: &ThreadId,
) -> Result<Vec<RunRecord>, ApiError> {
    let mut runs = Vec::new();
    loop {
        let query = RunListQuery {
            limit: PAGE,
            offset: runs.len(),
            status: None,
        };
        let page = state.runs.list_runs(thread, &query).await?;
        let last = page.len() < PAGE;
        runs.extend(page);
        if last {
            return Ok(runs);
        }
    }
}

/// Returns the messages and runs that the thread's transcript omits.
pub(crate) async fn hidden(
    state: &GatewayState,
    thread: &ThreadId,
    runs: &[RunRecord],
) -> Result<Hidden, ApiError> {
    let query = EventQuery {
        event_types: vec![MESSAGE_REMOVED.to_owned()],
        ..EventQuery::default()
    };
    let rows = all_events(state, thread, query, |_| false).await?;
    let ids = rows
        .iter()
        .filter_map(|row| row.event.content.get("ids")?.as_array());
    let messages = ids
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    Ok(Hidden {
        messages,
        runs: history::hidden_runs(runs),
    })
}

/// Returns all matching events in ascending order, up to the first that satisfies `enough`.
pub(crate) async fn all_events(
    state: &GatewayState,
    thread: &ThreadId,
    mut query: EventQuery,
    enough: impl Fn(&RunEvent) -> bool + Send,
) -> Result<Vec<RunEvent>, ApiError> {
    let mut rows: Vec<RunEvent> = Vec::new();
    query.limit = PAGE;
    loop {
        query.after_seq = rows.last().map(|row| row.seq).or(query.after_seq);
        let page = state
            .run_services
            .events
            .list(thread, &query, &Owner::Auto)
            .await?;
        let last = page.len() < PAGE;
        for row in page {
            let is_last = enough(&row);
            rows.push(row);
            if is_last {
                return Ok(rows);
            }
        }
        if last {
            return Ok(rows);
        }
    }
}

/// Position of a snapshot: the thread's newest, or an older one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapshotKind {
    Newest,
    Past,
}

/// Returns the thread's messages at a snapshot, including compacted ones.
pub(crate) async fn transcript(
    state: &GatewayState,
    snapshot: &Snapshot,
    kind: SnapshotKind,
    runs: &[RunRecord],
) -> Result<Vec<Value>, ApiError> {
    let thread = &snapshot.meta.thread_id;
    let checkpoint = snapshot.state.messages();
    let ids: HashSet<&str> = checkpoint
        .iter()
        .filter_map(|message| message.id.as_deref())
        .collect();
    let query = EventQuery {
        category: Some(category::MESSAGE.to_owned()),
        ..EventQuery::default()
    };
    let mut journal = all_events(state, thread, query, |row| {
        history::reaches_checkpoint(thread, row, &ids)
    })
    .await?;
    if kind == SnapshotKind::Past {
        journal.retain(|row| row.event.created_at <= snapshot.meta.created_at);
    }
    let hidden = hidden(state, thread, runs).await?;
    Ok(history::assemble(thread, checkpoint, &journal, &hidden))
}

/// Returns the checkpoint that follows `snapshot`, from which the results of its pending tasks are
/// taken. `None` if there is none, or if the dialect does not report results.
pub(crate) async fn successor(
    state: &GatewayState,
    snapshot: &Snapshot,
    dialect: Dialect,
) -> Result<Option<Snapshot>, ApiError> {
    if !dialect.is_platform() || snapshot.meta.next.is_empty() {
        return Ok(None);
    }
    let thread = &snapshot.meta.thread_id;
    let query = HistoryQuery {
        limit: MAX_SCANNED_CHECKPOINTS,
        ..HistoryQuery::default()
    };
    let metas = state
        .thread_services
        .checkpoints
        .list_meta(thread, &query)
        .await?;
    match metas
        .iter()
        .rfind(|meta| meta.parent_id.as_ref() == Some(&snapshot.meta.checkpoint_id))
    {
        Some(meta) => Ok(state
            .thread_services
            .checkpoints
            .get(thread, Some(&meta.checkpoint_id))
            .await?),
        None => Ok(None),
    }
}

/// Returns the thread's messages for a dialect: the checkpoint's messages for the platform, the
/// whole transcript for DeerFlow.
pub(crate) async fn messages(
    state: &GatewayState,
    snapshot: &Snapshot,
    kind: SnapshotKind,
    dialect: Dialect,
) -> Result<Vec<Value>, ApiError> {
    if dialect.is_platform() {
        return Ok(snapshot
            .state
            .messages()
            .iter()
            .map(|message| json!(message.json()))
            .collect());
    }
    let runs = all_runs(state, &snapshot.meta.thread_id).await?;
    let mut messages = transcript(state, snapshot, kind, &runs).await?;
    let query = EventQuery {
        event_types: vec!["llm.human.input".to_owned()],
        ..EventQuery::default()
    };
    let questions = all_events(state, &snapshot.meta.thread_id, query, |_| false).await?;
    let run_starts = history::run_starts(&snapshot.meta.thread_id, &questions);
    history::annotate(&mut messages, &run_starts, &history::durations(&runs));
    Ok(messages)
}

/// Returns the details of a single thread that its row does not have: full values, interrupts, the
/// last error.
pub(crate) async fn thread_facts(
    state: &GatewayState,
    thread: &ThreadRecord,
    dialect: Dialect,
) -> Result<ThreadFacts, ApiError> {
    let mut facts = ThreadFacts::default();
    if dialect.is_platform() && (thread.assistant.is_some() || thread.status != ThreadStatus::Idle)
    {
        facts.error = last_end(state, &thread.thread_id)
            .await?
            .as_ref()
            .map(end_error_json)
            .unwrap_or_default();
    }
    if let Some(snapshot) = state
        .thread_services
        .checkpoints
        .get(&thread.thread_id, None)
        .await?
    {
        facts.interrupts = pending_interrupts(&snapshot.meta.next);
        facts.values = Some(values_json(
            &snapshot,
            messages(state, &snapshot, SnapshotKind::Newest, dialect).await?,
        ));
    }
    Ok(facts)
}

/// Returns the content of a single thread, as the platform shows it.
pub(crate) async fn platform_content(
    state: &GatewayState,
    thread: &ThreadId,
) -> Result<ThreadContent, ApiError> {
    let content = state
        .thread_services
        .threads
        .contents(std::slice::from_ref(thread))
        .await?
        .remove(thread)
        .unwrap_or_default();
    match content.damage {
        Some(damage) => Err(ApiError::Internal(damage)),
        None => Ok(content),
    }
}

/// Returns the newest state of a thread, as the platform shows it; `None` if there is none.
pub(crate) async fn newest_state(
    state: &GatewayState,
    thread: &ThreadId,
    subgraphs: bool,
) -> Result<Option<RawView>, ApiError> {
    let Some(stored) = platform_content(state, thread).await?.state else {
        return Ok(None);
    };
    let view = StateView {
        subgraphs,
        ..StateView::of(Dialect::Platform)
    };
    let snapshot = Snapshot {
        meta: stored.meta.clone(),
        state: ThreadState::default(),
        log_tail: 0,
    };
    Ok(Some(RawView::new(
        state_json(&snapshot, Map::new(), None, &view),
        Some(stored.into()),
    )))
}

/// Returns the state of an agent nested in a tool call, as the platform shows it; `None` if it does
/// not exist.
pub(crate) async fn nested_state(
    state: &GatewayState,
    thread: &ThreadId,
    requested: &NestedRef,
    subgraphs: bool,
) -> Result<Option<Value>, ApiError> {
    let checkpoints = &state.thread_services.checkpoints;
    let find_nested = |outer: &CheckpointMeta| {
        let (snapshot, path) = nested_at(outer, &requested.namespace)?;
        let is_requested = requested
            .checkpoint
            .as_ref()
            .is_none_or(|id| snapshot.meta.checkpoint_id == *id);
        is_requested.then_some((snapshot, path))
    };
    let outer = checkpoints.get(thread, requested.outer.as_ref()).await?;
    let mut nested = outer.and_then(|outer| find_nested(&outer.meta));
    if nested.is_none() && requested.outer.is_none() {
        let query = HistoryQuery {
            limit: MAX_SCANNED_CHECKPOINTS,
            ..HistoryQuery::default()
        };
        nested = checkpoints
            .list_meta(thread, &query)
            .await?
            .iter()
            .find_map(find_nested);
    }
    let Some((snapshot, path)) = nested else {
        return Ok(None);
    };
    let messages = snapshot
        .state
        .messages()
        .iter()
        .map(|message| json!(message.json()))
        .collect();
    let view = StateView {
        dialect: Dialect::Platform,
        path,
        subgraphs,
    };
    Ok(Some(state_json(
        &snapshot,
        values_json(&snapshot, messages),
        None,
        &view,
    )))
}

/// Returns the end of the thread's newest finished run.
async fn last_end(state: &GatewayState, thread: &ThreadId) -> Result<Option<LastEnd>, ApiError> {
    let query = RunListQuery {
        limit: NEWEST_RUNS,
        ..RunListQuery::default()
    };
    let newest = state.runs.list_runs(thread, &query).await?;
    let ended = newest.into_iter().find(|run| run.status.is_terminal());
    Ok(ended.map(|run| LastEnd {
        status: run.status,
        stop_reason: run.stop_reason(),
        error: run.error,
        error_name: run.error_name,
    }))
}
