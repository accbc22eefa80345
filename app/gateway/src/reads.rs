//! What several routes read: a thread's row, its runs, its transcript.

use std::collections::HashSet;

use deerflow_domain::threads::{LastEnd, ThreadContent, ThreadRecord};
use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::checkpoint::{CheckpointMeta, HistoryQuery, Snapshot, nested_at};
use harness::runtime::runs::store::{EventQuery, RunEvent, RunListQuery, category};
use harness::runtime::runs::{RunRecord, ThreadStatus};
use harness::runtime::threads::open_questions;
use harness::state::ThreadState;
use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::history::{self, Hidden, MESSAGE_REMOVED};
use crate::input::NestedRef;
use crate::state::GatewayState;
use crate::wire::{
    RawValues, Shown, StateView, ThreadFacts, end_error_json, is_rolled_back, state_json,
    values_json,
};

/// How many checkpoints are looked through for the one that follows another.
const MOST_SUCCESSORS: usize = 1_000;
/// How many rows are read at a time where all of them are needed.
const PAGE: usize = 500;
/// Among so many runs of a thread, one has ended: more do not wait on it.
const NEWEST_RUNS: usize = 20;

/// The thread, if it is the actor's.
pub(crate) async fn require_thread(
    state: &GatewayState,
    thread: &ThreadId,
) -> Result<ThreadRecord, ApiError> {
    let found = state.threads.get(thread, &Owner::Auto).await?;
    found.ok_or_else(|| ApiError::ThreadNotFound(thread.to_string()))
}

/// The run, if it is on the thread and the dialect shows it.
pub(crate) async fn require_run(
    state: &GatewayState,
    thread: &ThreadId,
    run: &RunId,
    dialect: Dialect,
) -> Result<RunRecord, ApiError> {
    let found = state.runs.get_run(Some(thread), run).await?;
    found
        .filter(|run| !(dialect.is_platform() && is_rolled_back(run)))
        .ok_or_else(|| ApiError::RunNotFound(run.to_string()))
}

/// All runs of a thread, newest first.
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

/// What the thread's transcript leaves out.
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

/// Every event that matches, however many there are, in ascending order, up to the first that satisfies `enough`.
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
        let page = state.events.list(thread, &query, &Owner::Auto).await?;
        let last = page.len() < PAGE;
        for row in page {
            let done = enough(&row);
            rows.push(row);
            if done {
                return Ok(rows);
            }
        }
        if last {
            return Ok(rows);
        }
    }
}

/// Whether a snapshot is the thread's newest, or one from its past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Newest,
    Past,
}

/// The thread's messages at a snapshot, compacted ones included.
pub(crate) async fn transcript(
    state: &GatewayState,
    snapshot: &Snapshot,
    moment: Moment,
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
    let mut feed = all_events(state, thread, query, |row| {
        history::anchors(thread, row, &ids)
    })
    .await?;
    if moment == Moment::Past {
        feed.retain(|row| row.event.created_at <= snapshot.meta.created_at);
    }
    let hidden = hidden(state, thread, runs).await?;
    Ok(history::assemble(thread, checkpoint, &feed, &hidden))
}

/// The checkpoint that followed an older one, where the dialect tells what became of the tasks that were due there.
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
        limit: MOST_SUCCESSORS,
        ..HistoryQuery::default()
    };
    let metas = state.checkpoints.list_meta(thread, &query).await?;
    match metas
        .iter()
        .rfind(|meta| meta.parent_id.as_ref() == Some(&snapshot.meta.checkpoint_id))
    {
        Some(meta) => Ok(state
            .checkpoints
            .get(thread, Some(&meta.checkpoint_id))
            .await?),
        None => Ok(None),
    }
}

/// The thread's messages as a dialect shows them: the platform's are those of the checkpoint, DeerFlow's the whole transcript.
pub(crate) async fn messages(
    state: &GatewayState,
    snapshot: &Snapshot,
    moment: Moment,
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
    let mut messages = transcript(state, snapshot, moment, &runs).await?;
    let query = EventQuery {
        event_types: vec!["llm.human.input".to_owned()],
        ..EventQuery::default()
    };
    let questions = all_events(state, &snapshot.meta.thread_id, query, |_| false).await?;
    let beginnings = history::beginnings(&snapshot.meta.thread_id, &questions);
    history::annotate(&mut messages, &beginnings, &history::durations(&runs));
    Ok(messages)
}

/// What a single thread shows besides its row: full values, open questions, the last error.
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
    if let Some(snapshot) = state.checkpoints.get(&thread.thread_id, None).await? {
        facts.interrupts = open_questions(&snapshot.meta.next);
        facts.values = Some(values_json(
            &snapshot,
            messages(state, &snapshot, Moment::Newest, dialect).await?,
        ));
    }
    Ok(facts)
}

/// What a single thread holds, as the platform shows it.
pub(crate) async fn content_of(
    state: &GatewayState,
    thread: &ThreadId,
) -> Result<ThreadContent, ApiError> {
    let content = state
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

/// The newest state of a thread, as the platform shows it; `None` when there is none.
pub(crate) async fn newest_state(
    state: &GatewayState,
    thread: &ThreadId,
    subgraphs: bool,
) -> Result<Option<Shown>, ApiError> {
    let Some(stored) = content_of(state, thread).await?.state else {
        return Ok(None);
    };
    let values = RawValues::of(&stored);
    let view = StateView {
        subgraphs,
        ..StateView::of(Dialect::Platform)
    };
    let snapshot = Snapshot {
        meta: stored.meta,
        state: ThreadState::default(),
        log_tail: 0,
    };
    Ok(Some(Shown::new(
        state_json(&snapshot, Map::new(), None, &view),
        Some(values),
    )))
}

/// The state of an agent inside of a call, as the platform shows it; `None` when there is none of that name.
pub(crate) async fn nested_state(
    state: &GatewayState,
    thread: &ThreadId,
    asked: &NestedRef,
    subgraphs: bool,
) -> Result<Option<Value>, ApiError> {
    let checkpoints = &state.checkpoints;
    let found = |outer: &CheckpointMeta| {
        let (snapshot, place) = nested_at(outer, &asked.namespace)?;
        let wanted = asked
            .checkpoint
            .as_ref()
            .is_none_or(|id| snapshot.meta.checkpoint_id == *id);
        wanted.then_some((snapshot, place))
    };
    let outer = checkpoints.get(thread, asked.outer.as_ref()).await?;
    let mut nested = outer.and_then(|outer| found(&outer.meta));
    if nested.is_none() && asked.outer.is_none() {
        let query = HistoryQuery {
            limit: MOST_SUCCESSORS,
            ..HistoryQuery::default()
        };
        nested = checkpoints
            .list_meta(thread, &query)
            .await?
            .iter()
            .find_map(found);
    }
    let Some((snapshot, place)) = nested else {
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
        place,
        subgraphs,
    };
    Ok(Some(state_json(
        &snapshot,
        values_json(&snapshot, messages),
        None,
        &view,
    )))
}

/// How the newest finished run of a thread ended.
async fn last_end(state: &GatewayState, thread: &ThreadId) -> Result<Option<LastEnd>, ApiError> {
    let query = RunListQuery {
        limit: NEWEST_RUNS,
        ..RunListQuery::default()
    };
    let newest = state.runs.list_runs(thread, &query).await?;
    let ended = newest.into_iter().find(|run| run.status.is_terminal());
    Ok(ended.map(|run| LastEnd {
        status: run.status,
        error: run.error,
        error_name: run.error_name,
        stop_reason: run.stop_reason,
    }))
}
