//! `POST /threads/{t}/state`: an external update, as a new checkpoint on top of the newest or of an
//! older one.

use std::collections::HashSet;

use axum::extract::State;
use deerflow_domain::threads::ThreadRecord;
use harness::ids::{CheckpointId, RunId};
use harness::messages::{Message, REMOVE_ALL};
use harness::runtime::checkpoint::{CheckpointSource, ExternalUpdate, PutError, Snapshot};
use harness::runtime::compute::{Size, heavy_poll};
use harness::runtime::runs::store::{NewRunEvent, category};
use harness::runtime::runs::{RunError, ThreadStatus};
use harness::state::{Channels, StateError, StateUpdate, ThreadState};
use serde_json::{Map, Value, json};

use super::pending_tasks::{PendingTasks, node_write, pending_tasks, thread_agent};
use super::state::snapshot_json;
use super::update::{LOCATION, Update, busy, refused};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids};
use crate::queries::history::MESSAGE_REMOVED;
use crate::queries::threads::{SnapshotKind, all_runs, require_thread, transcript};
use crate::requests::{
    NamedCheckpoint, StateValues, bodies, checkpoint_of, nested_of, read_values,
};
use crate::responses::{LargeJson, StateView, checkpoint_json};
use crate::routes::App;
use crate::state::GatewayState;

/// Maximum number of attempts after concurrent changes.
const MAX_ATTEMPTS: u32 = 8;

pub(crate) async fn update_state(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    body: Body<bodies::StateUpdate>,
) -> Result<LargeJson<Value>, ApiError> {
    let thread = ids.thread()?;
    let (body, mut issues) = body.parts();
    let named = NamedCheckpoint {
        object: body.checkpoint.as_ref(),
        id: body.checkpoint_id.as_deref(),
    };
    let from = checkpoint_of(named, &mut issues, Some(&thread), dialect)?;
    let nested = if dialect.is_platform() {
        nested_of(body.checkpoint.as_ref(), &mut issues, from.as_ref())
    } else {
        None
    };
    issues.finish()?;
    let update = Update {
        values: body.values.unwrap_or_default(),
        as_node: body.as_node,
        ..Update::default()
    };
    if nested.is_some() {
        return Err(ApiError::BadRequest(
            "The state of a nested agent cannot be changed.".to_owned(),
        ));
    }
    let from = from.map(|reference| reference.checkpoint_id);
    let record = require_thread(&state, &thread).await?;
    if record.status == ThreadStatus::Busy {
        return Err(busy());
    }
    let changed = change_state(&state, &record, vec![update], from.as_ref(), dialect).await?;
    response(&state, changed, dialect).await
}

/// Writes updates as one checkpoint on top of the newest, or of `from`.
pub(super) async fn change_state(
    state: &GatewayState,
    record: &ThreadRecord,
    mut updates: Vec<Update>,
    from: Option<&CheckpointId>,
    dialect: Dialect,
) -> Result<Snapshot, ApiError> {
    for _ in 0..MAX_ATTEMPTS {
        match (StateChange {
            record,
            updates: &mut updates,
            from,
        })
        .write(state, dialect)
        .await?
        {
            WriteOutcome::Done(changed) => return Ok(*changed),
            WriteOutcome::Moved => {
                tracing::debug!(thread_id = %record.thread_id, "the thread changed concurrently, retrying the state update")
            }
        }
    }
    Err(ApiError::Conflict(
        "Thread is being changed by other requests. Update state again later.".to_owned(),
    ))
}

/// A requested change of a thread.
struct StateChange<'a> {
    record: &'a ThreadRecord,
    updates: &'a mut [Update],
    from: Option<&'a CheckpointId>,
}

/// Outcome of one attempt.
enum WriteOutcome {
    /// Written as this checkpoint.
    Done(Box<Snapshot>),
    /// The thread changed since it was read.
    Moved,
}

impl StateChange<'_> {
    /// Reads the thread, plans the change on it and writes it, if the thread is still unchanged.
    async fn write(self, state: &GatewayState, dialect: Dialect) -> Result<WriteOutcome, ApiError> {
        let Self {
            record,
            updates,
            from,
        } = self;
        let thread = &record.thread_id;
        let base = state.thread_services.checkpoints.get(thread, from).await?;
        match (&base, from) {
            (None, Some(id)) => return Err(ApiError::CheckpointNotFound(id.to_string())),
            (None, None)
                if dialect.is_platform()
                    && record.assistant.is_none()
                    && !record.metadata.contains_key("graph_id") =>
            {
                return Err(ApiError::BadRequest(format!(
                    "Thread '{thread}' has no assigned graph ID: make a run on it first, or set metadata.graph_id"
                )));
            }
            _ => {}
        }
        // The newest state decides which messages were removed, even if the change forks from an
        // older one.
        let newest = if from.is_some() {
            state.thread_services.checkpoints.get(thread, None).await?
        } else {
            base.clone()
        };
        let (mut names_channels, mut replaces) = (false, false);
        let agent = thread_agent(state, record, base.as_ref()).await;
        // A thread whose agent cannot run still accepts updates of the common channels.
        let channels = agent
            .as_ref()
            .map_or_else(|_unknown| Channels::lead(), |agent| agent.channels());
        let mut after = base
            .as_ref()
            .map(|base| base.state.clone())
            .unwrap_or_default()
            .defined_by(channels.clone());
        let mut position = None;
        for update in &mut *updates {
            let machine = position.as_ref().map_or(
                base.as_ref().and_then(|base| base.meta.machine.as_ref()),
                |at: &PendingTasks| at.machine.as_ref(),
            );
            let values = match node_write(state, &agent, update, &after, machine)? {
                None => update.read(&channels, dialect, state.process.ids.as_ref())?,
                Some(written) => {
                    names_channels = true;
                    position = Some(PendingTasks {
                        next: written.next,
                        machine: written.machine,
                    });
                    let most = state.node().limits().max_thread_messages;
                    after
                        .apply_within(written.update, most, state.process.ids.as_ref())
                        .map_err(|error| ApiError::Unprocessable(error.to_string()))?;
                    read_values(written.values, &channels, LOCATION, dialect)?
                }
            };
            heavy_poll(Size::messages(
                values.messages.as_deref().unwrap_or_default(),
            ))
            .await;
            names_channels |= values != StateValues::default();
            replaces |= replaces_messages(&values, dialect);
            after = apply_values(after, values, state, dialect)?;
        }
        let PendingTasks { next, machine } = match position {
            Some(position) if updates.iter().all(|update| update.goto.is_empty()) => position,
            _ => pending_tasks(state, &agent, updates, base.as_ref(), &after)?,
        };

        let planned_on = match &newest {
            Some(newest) => newest.log_tail,
            None => state.thread_services.checkpoints.log_tail(thread).await?,
        };
        let change = ExternalUpdate {
            thread_id: thread,
            base: base.as_ref(),
            newest: newest.as_ref(),
            log_tail: planned_on,
            after: &mut after,
            source: if names_channels {
                CheckpointSource::Update
            } else {
                CheckpointSource::Fork
            },
            next,
            machine,
        };
        let change = change.planned(&*state.process.ids, state.process.clock.now());
        let (meta, last) = (change.write.meta.clone(), change.write.new_messages.last());
        let log_tail = last.map_or(planned_on, |(position, _)| *position);
        match state
            .thread_services
            .checkpoints
            .put_outside_run(change)
            .await
        {
            Ok(()) => {}
            Err(PutError::Moved(_)) => return Ok(WriteOutcome::Moved),
            Err(error) => return Err(refused(error)),
        }
        let changed = Snapshot {
            meta,
            state: after,
            log_tail,
        };
        state.runs.runtime().retain_state(&changed);
        if let Some(newest) = newest.filter(|_| from.is_none()) {
            let previous = visible_ids(state, &newest, replaces).await?;
            record_removals(state, record, previous, &changed.state).await?;
        }
        Ok(WriteOutcome::Done(Box::new(changed)))
    }
}

async fn response(
    state: &GatewayState,
    changed: Snapshot,
    dialect: Dialect,
) -> Result<LargeJson<Value>, ApiError> {
    if dialect == Dialect::DeerFlow {
        return Ok(LargeJson(
            snapshot_json(
                state,
                &changed,
                SnapshotKind::Newest,
                &StateView::of(dialect),
            )
            .await?,
        ));
    }
    let meta = &changed.meta;
    let checkpoint = checkpoint_json(&meta.thread_id, &meta.checkpoint_id);
    Ok(LargeJson(
        json!({ "checkpoint": checkpoint, "configurable": checkpoint, "checkpoint_id": meta.checkpoint_id }),
    ))
}

/// Returns the state after the change: DeerFlow replaces whole channels, the platform applies
/// reducers.
fn apply_values(
    mut before: ThreadState,
    values: StateValues,
    state: &GatewayState,
    dialect: Dialect,
) -> Result<ThreadState, ApiError> {
    let limits = state.node().limits();
    let count = values.messages.as_ref().map_or(0, Vec::len);
    if count > limits.max_input_messages {
        let limit = limits.max_input_messages;
        return Err(ApiError::Unprocessable(format!(
            "values.messages: {}",
            RunError::TooManyMessages { count, limit }
        )));
    }
    let most = limits.max_thread_messages;
    let refused = |error: StateError| ApiError::Unprocessable(error.to_string());
    if dialect.is_platform() {
        let update = StateUpdate {
            messages: values.messages.unwrap_or_default(),
            channels: values.channels,
        };
        before
            .apply_within(update, most, state.process.ids.as_ref())
            .map_err(refused)?;
        return Ok(before);
    }
    let mut channels = before.channels().clone();
    for (name, value) in values.channels {
        if value.is_null() {
            channels.shift_remove(&name);
        } else {
            channels.insert(name, value);
        }
    }
    before.set_channels(channels);
    if let Some(messages) = values.messages {
        let clear = Message::remove(REMOVE_ALL);
        let update = StateUpdate::messages(std::iter::once(clear).chain(messages));
        before
            .apply_within(update, most, state.process.ids.as_ref())
            .map_err(refused)?;
    }
    Ok(before)
}

/// `true` if the change replaces the whole list of messages.
fn replaces_messages(values: &StateValues, dialect: Dialect) -> bool {
    let clears = |message: &Message| message.id.as_deref() == Some(REMOVE_ALL);
    values
        .messages
        .as_ref()
        .is_some_and(|messages| !dialect.is_platform() || messages.iter().any(clears))
}

/// Returns the ids of the messages visible before the change. A replacement also replaces compacted
/// messages.
async fn visible_ids(
    state: &GatewayState,
    newest: &Snapshot,
    replaces: bool,
) -> Result<Vec<String>, ApiError> {
    if !replaces {
        return Ok(newest
            .state
            .messages()
            .iter()
            .filter_map(|message| message.id.clone())
            .collect());
    }
    let runs = all_runs(state, &newest.meta.thread_id).await?;
    let seen = transcript(state, newest, SnapshotKind::Newest, &runs).await?;
    Ok(seen
        .iter()
        .filter_map(|message| message.get("id")?.as_str())
        .map(str::to_owned)
        .collect())
}

/// Records the ids of removed messages, so that the transcript omits them.
async fn record_removals(
    state: &GatewayState,
    record: &ThreadRecord,
    previous: Vec<String>,
    after: &ThreadState,
) -> Result<(), ApiError> {
    let remaining: HashSet<&str> = after
        .messages()
        .iter()
        .filter_map(|message| message.id.as_deref())
        .collect();
    let removed: Vec<String> = previous
        .into_iter()
        .filter(|id| !remaining.contains(id.as_str()))
        .collect();
    if removed.is_empty() {
        return Ok(());
    }
    let run_id = RunId::parse(format!("state-update-{}", state.process.ids.random()))
        .map_err(|error| ApiError::Internal(error.to_string()))?;
    let event = NewRunEvent {
        thread_id: record.thread_id.clone(),
        run_id,
        user_id: record.user_id.clone(),
        event_type: MESSAGE_REMOVED.to_owned(),
        category: category::TRACE.to_owned(),
        content: json!({ "ids": removed }).into(),
        metadata: Map::new(),
        created_at: state.process.clock.now(),
    };
    state.run_services.events.append(vec![event]).await?;
    Ok(())
}
