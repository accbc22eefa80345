//! `POST /threads/{t}/state`: a change from outside a run, as a new checkpoint on top of the newest or of an older one.

use std::collections::HashSet;

use axum::Json;
use axum::extract::State;
use deerflow_domain::threads::ThreadRecord;
use harness::ids::{CheckpointId, RunId, ThreadId};
use harness::messages::{Message, REMOVE_ALL};
use harness::runtime::checkpoint::{
    CheckpointMeta, CheckpointSource, OutsideChange, PendingTask, PutError, Snapshot,
};
use harness::runtime::compute::{Size, heavy_poll};
use harness::runtime::runs::store::{NewRunEvent, category};
use harness::runtime::runs::{RunError, ThreadStatus, Visit};
use harness::state::{StateError, StateUpdate, ThreadState};
use serde_json::{Map, Value, json};

use super::state::state_of;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Fields, Ids};
use crate::history::MESSAGE_REMOVED;
use crate::input::{StateValues, checkpoint_of, nested_of, read_values};
use crate::reads::{Moment, all_runs, require_thread, transcript};
use crate::routes::{Answer, App};
use crate::state::GatewayState;
use crate::wire::{StateView, checkpoint_json};

/// How often a change is planned anew because others changed the thread meanwhile.
const MOST_TRIES: u32 = 8;

pub(crate) async fn update_state(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    Body(mut body): Body,
) -> Answer {
    let thread = ids.thread()?;
    let update = read_update(&mut body);
    let from = checkpoint_of(&mut body, Some(&thread), dialect)?;
    let nested = if dialect.is_platform() {
        nested_of(&mut body, from.as_ref())
    } else {
        None
    };
    body.finish()?;
    if nested.is_some() {
        return Err(ApiError::BadRequest(
            "The state of an agent inside of a call cannot be changed.".to_owned(),
        ));
    }
    let from = from.map(|reference| reference.checkpoint_id);
    let record = require_thread(&state, &thread).await?;
    if record.status == ThreadStatus::Busy {
        return Err(busy());
    }
    let made = change_state(&state, &record, &[update], from.as_ref(), dialect).await?;
    answer(&state, &thread, &made, dialect).await
}

/// Values, the node for which they speak, and where it goes besides its followers.
#[derive(Debug, Default)]
pub(super) struct Update {
    pub(super) values: Map<String, Value>,
    pub(super) as_node: Option<String>,
    pub(super) goto: Vec<Visit>,
}

/// An update in a body.
pub(super) fn read_update(body: &mut Fields) -> Update {
    Update {
        values: body.object("values").unwrap_or_default(),
        as_node: body.text("as_node"),
        goto: Vec::new(),
    }
}

/// Writes updates that belong together as one checkpoint on top of the newest, or of `from`.
pub(super) async fn change_state(
    state: &GatewayState,
    record: &ThreadRecord,
    updates: &[Update],
    from: Option<&CheckpointId>,
    dialect: Dialect,
) -> Result<CheckpointMeta, ApiError> {
    for _ in 0..MOST_TRIES {
        match (Change {
            record,
            updates,
            from,
        })
        .write(state, dialect)
        .await?
        {
            Written::Done(meta) => return Ok(*meta),
            Written::Moved => {
                tracing::debug!(thread_id = %record.thread_id, "the thread was changed meanwhile, planning the change again")
            }
        }
    }
    Err(ApiError::Conflict(
        "Thread is being changed by other requests. Update state again later.".to_owned(),
    ))
}

fn busy() -> ApiError {
    ApiError::Conflict(
        "Thread has a run in flight. Update state after the run finishes.".to_owned(),
    )
}

/// What is asked of a thread.
struct Change<'a> {
    record: &'a ThreadRecord,
    updates: &'a [Update],
    from: Option<&'a CheckpointId>,
}

/// How a try to write ended.
enum Written {
    /// Written as this checkpoint.
    Done(Box<CheckpointMeta>),
    /// The thread was changed since it was read.
    Moved,
}

impl Change<'_> {
    /// Reads the thread as it is now, plans the change on it and writes it, if the thread is still that.
    async fn write(self, state: &GatewayState, dialect: Dialect) -> Result<Written, ApiError> {
        let Self {
            record,
            updates,
            from,
        } = self;
        let thread = &record.thread_id;
        let base = state.checkpoints.get(thread, from).await?;
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
        // What the newest state held decides which messages were taken away, wherever the change forks from.
        let newest = if from.is_some() {
            state.checkpoints.get(thread, None).await?
        } else {
            base.clone()
        };
        let (mut names_channels, mut replaces) = (false, false);
        let mut after = base
            .as_ref()
            .map(|base| base.state.clone())
            .unwrap_or_default();
        for update in updates {
            let values = read_values(update.values.clone(), "values", dialect)?;
            heavy_poll(Size::messages(
                values.messages.as_deref().unwrap_or_default(),
            ))
            .await;
            names_channels |= values != StateValues::default();
            replaces |= replaces_messages(&values, dialect);
            after = changed(after, values, state, dialect)?;
        }
        let Due { next, machine } = due(state, record, updates, base.as_ref(), &after).await?;

        let planned_on = match &newest {
            Some(newest) => newest.log_tail,
            None => state.checkpoints.log_tail(thread).await?,
        };
        let change = OutsideChange {
            thread_id: thread,
            base: base.as_ref(),
            newest: newest.as_ref(),
            log_tail: planned_on,
            after: after.clone(),
            source: if names_channels {
                CheckpointSource::Update
            } else {
                CheckpointSource::Fork
            },
            next,
            machine,
        };
        let change = change.planned(&*state.ids, state.clock.now());
        let meta = change.write.meta.clone();
        match state.checkpoints.put_outside_run(change).await {
            Ok(()) => {}
            Err(PutError::Moved(_)) => return Ok(Written::Moved),
            Err(error) => return Err(refused(error)),
        }
        if let Some(newest) = newest.filter(|_| from.is_none()) {
            let held = held_ids(state, &newest, replaces).await?;
            journal_removals(state, record, held, &after).await?;
        }
        Ok(Written::Done(Box::new(meta)))
    }
}

/// Why the state stays as it is.
pub(super) fn refused(error: PutError) -> ApiError {
    match error {
        PutError::Busy { .. } => busy(),
        PutError::NoThread(thread) => ApiError::ThreadNotFound(thread.to_string()),
        PutError::Checkpoint(error) => error.into(),
        other => ApiError::Internal(other.to_string()),
    }
}

async fn answer(
    state: &GatewayState,
    thread: &ThreadId,
    meta: &CheckpointMeta,
    dialect: Dialect,
) -> Answer {
    if dialect == Dialect::DeerFlow {
        return Ok(Json(
            state_of(state, thread, None, &StateView::of(dialect)).await?,
        ));
    }
    let checkpoint = checkpoint_json(thread, &meta.checkpoint_id);
    Ok(Json(
        json!({ "checkpoint": checkpoint, "configurable": checkpoint, "checkpoint_id": meta.checkpoint_id }),
    ))
}

/// The state after the change: DeerFlow replaces whole channels, the platform reduces.
fn changed(
    mut before: ThreadState,
    values: StateValues,
    state: &GatewayState,
    dialect: Dialect,
) -> Result<ThreadState, ApiError> {
    let limits = state.runs.limits();
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
            .apply_within(update, most, state.ids.as_ref())
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
    let stored = before
        .messages()
        .iter()
        .cloned()
        .zip(before.log_places().iter().copied());
    let mut after = ThreadState::restored(
        stored.filter_map(|(message, place)| Some((place?, message))),
        channels,
    );
    if let Some(messages) = values.messages {
        let clear = Message::remove(REMOVE_ALL);
        let update = StateUpdate::messages(std::iter::once(clear).chain(messages));
        after
            .apply_within(update, most, state.ids.as_ref())
            .map_err(refused)?;
    }
    Ok(after)
}

/// The tasks that are due, and where the agent stands if the state does not tell.
#[derive(Default)]
struct Due {
    next: Vec<PendingTask>,
    machine: Option<Value>,
}

/// What is due after the change: as before, or what follows the nodes that the change speaks for, and where they go.
async fn due(
    state: &GatewayState,
    record: &ThreadRecord,
    updates: &[Update],
    base: Option<&Snapshot>,
    after: &ThreadState,
) -> Result<Due, ApiError> {
    let speak_for: Vec<&str> = updates
        .iter()
        .filter_map(|update| update.as_node.as_deref())
        .collect();
    if speak_for.is_empty() {
        return Ok(base
            .map(|base| Due {
                next: base.meta.next.clone(),
                machine: base.meta.machine.clone(),
            })
            .unwrap_or_default());
    }
    let assistant = match &record.assistant {
        Some(assistant) => assistant.clone(),
        None => state
            .assistants
            .list()
            .await
            .into_iter()
            .next()
            .map(|info| info.name)
            .unwrap_or_default(),
    };
    let agent = state.assistants.resolve(&assistant, &Map::new()).await?;
    let nodes = agent.nodes();
    let known = |name: &str| nodes.iter().any(|known| known == name);
    let goes_to = || {
        updates
            .iter()
            .flat_map(|update| &update.goto)
            .filter(|visit| visit.node != "__end__")
    };
    let mut named = speak_for
        .iter()
        .filter(|node| !matches!(**node, "__start__" | "__end__"))
        .copied()
        .chain(goes_to().map(|to| &*to.node));
    if let Some(unknown) = named.find(|node| !known(node)) {
        let unknown: String = unknown.chars().take(80).collect();
        return Err(ApiError::BadRequest(format!(
            "Node {unknown} does not exist"
        )));
    }
    let open_calls = after
        .messages()
        .last()
        .map_or(0, |message| message.tool_calls().len());
    let follower = |node: &str| match node {
        "__start__" if !known("model") => nodes.first().map(String::as_str),
        "__start__" | "tools" if known("model") => Some("model"),
        "model" if open_calls > 0 && known("tools") => Some("tools"),
        _ => None,
    };
    let followers = speak_for
        .iter()
        .filter_map(|node| follower(node))
        .map(|node| Visit {
            node: node.to_owned(),
            input: None,
        });
    let mut seen = HashSet::new();
    // A node that is due is due once, but for what is sent to it.
    let is_new = |visit: &Visit| visit.input.is_some() || seen.insert(visit.node.clone());
    let visits: Vec<Visit> = followers.chain(goes_to().cloned()).filter(is_new).collect();
    let task = |visit: &Visit| PendingTask::new(state.ids.random().to_string(), &visit.node);
    // Each call of an answer is a task of its own.
    let tasks = |visit: &Visit| {
        if visit.node == "tools" && visit.input.is_none() {
            open_calls.max(1)
        } else {
            1
        }
    };
    let next = visits
        .iter()
        .flat_map(|visit| (0..tasks(visit)).map(move |_| task(visit)))
        .collect();
    // Where nobody is sent anywhere, the state tells.
    let machine = if goes_to().next().is_some() {
        agent.parked(visits, state.ids.random())
    } else {
        None
    };
    Ok(Due { next, machine })
}

/// Whether the change stands for the whole list of messages, not for some of them.
fn replaces_messages(values: &StateValues, dialect: Dialect) -> bool {
    let clears = |message: &Message| message.id.as_deref() == Some(REMOVE_ALL);
    values
        .messages
        .as_ref()
        .is_some_and(|messages| !dialect.is_platform() || messages.iter().any(clears))
}

/// The messages that a reader saw before the change. A replacement also replaces those that compaction took out.
async fn held_ids(
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
    let seen = transcript(state, newest, Moment::Newest, &runs).await?;
    Ok(seen
        .iter()
        .filter_map(|message| message.get("id")?.as_str())
        .map(str::to_owned)
        .collect())
}

/// Names the messages that the change took away, so that the transcript does not bring them back.
async fn journal_removals(
    state: &GatewayState,
    record: &ThreadRecord,
    held: Vec<String>,
    after: &ThreadState,
) -> Result<(), ApiError> {
    let kept: HashSet<&str> = after
        .messages()
        .iter()
        .filter_map(|message| message.id.as_deref())
        .collect();
    let gone: Vec<String> = held
        .into_iter()
        .filter(|id| !kept.contains(id.as_str()))
        .collect();
    if gone.is_empty() {
        return Ok(());
    }
    let run_id = RunId::parse(format!("state-update-{}", state.ids.random()))
        .map_err(|error| ApiError::Internal(error.to_string()))?;
    let event = NewRunEvent {
        thread_id: record.thread_id.clone(),
        run_id,
        user_id: record.user_id.clone(),
        event_type: MESSAGE_REMOVED.to_owned(),
        category: category::TRACE.to_owned(),
        content: json!({ "ids": gone }),
        metadata: Map::new(),
        created_at: state.clock.now(),
    };
    state.events.append(vec![event]).await?;
    Ok(())
}
