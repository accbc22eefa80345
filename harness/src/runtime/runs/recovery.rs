//! After a crash: what becomes of the runs that nobody works on any more. What their callers were told was accepted is never lost.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::callbacks::{HUMAN_INPUT, MEMORY_CONTEXT};
use super::error::RunError;
use super::observer::{LifecycleKind, RunLifecycleEvent};
use super::parts::{RunLimits, RuntimeParts};
use super::queue::end_unstarted;
use super::record::{LOST_ERROR, RunRecord, ThreadStatus};
use super::registry::RunRegistry;
use super::spec::{CancelAction, Durability, Recovery, RunSpec};
use super::status::RunStatus;
use super::store::{
    CommitError, EventQuery, NewRunEvent, RunCommit, RunEnd, RunEvent, RunStanding, StoreError,
    WebhookCall, category,
};
use crate::ids::{RunId, ThreadId};
use crate::messages::Message;
use crate::runtime::actor_context::Owner;
use crate::runtime::checkpoint::{
    CheckpointError, CheckpointMeta, CheckpointSource, CheckpointWrite, HistoryQuery,
};
use crate::runtime::fail_points;
use crate::state::{StateUpdate, ThreadState};

/// The stop reason of a run whose process died.
pub const ORPHAN_RECOVERED: &str = "orphan_recovered";

/// The stop reason of a run that was undone.
pub const ROLLED_BACK: &str = "rolled_back";

/// What is said of a run whose process died.
pub(super) const LOST: &str = "the process that executed the run ended before it";

/// What is said of a run whose processes died one after the other.
const EXHAUSTED: &str = "every process that executed the run ended before it";

/// The wait between later tries of an end that nobody waits for any more.
pub(super) const END_LATER: Duration = Duration::from_secs(5);

/// How often, and how long after one another, a thread is read that the input of a lost run is to join.
const INPUT_TRIES: u32 = 20;
const INPUT_PAUSE: Duration = Duration::from_millis(500);

/// The stop reason of a run that kept its steps to itself until its end, and whose process died.
pub const NODE_LOST: &str = "node_lost";

/// The stop reason of a run whose processes died one after the other.
pub const ATTEMPTS_EXHAUSTED: &str = "attempts_exhausted";

/// What becomes of a run that was taken: it starts, anew or where it was, or it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Start,
    /// With this stop reason and text.
    End(&'static str, &'static str),
}

/// Decides by how many owners died with the run, and whether it had begun to work by then (section 3.6 of the reliability contract).
pub(super) fn fate(
    run: &RunRecord,
    spec: &RunSpec,
    losses: u32,
    began: bool,
    limits: &RunLimits,
) -> Fate {
    match losses {
        0 => Fate::Start,
        _ if run.cancel.is_some() => Fate::End(ORPHAN_RECOVERED, LOST),
        _ if limits.recovery == Recovery::Fail || spec.recovery == Some(Recovery::Fail) => {
            Fate::End(ORPHAN_RECOVERED, LOST)
        }
        // One that kills whoever starts it ends some time.
        lost if lost >= limits.max_attempts => Fate::End(ATTEMPTS_EXHAUSTED, EXHAUSTED),
        _ if !began => Fate::Start,
        _ if spec.durability == Durability::Exit => Fate::End(NODE_LOST, LOST),
        _ => Fate::Start,
    }
}

/// Ends what was told to stop while it waited, by a process that did not live to do it. What else waits begins here and nowhere
/// else if this process has the store for itself: then it is made known, so that who asks for it waits for its turn.
pub(super) async fn find_waiting(
    registry: &Arc<RunRegistry>,
    parts: &RuntimeParts,
) -> Result<(), RunError> {
    for run in end_told_to_stop(registry, parts).await? {
        if !registry.membership.is_shared() {
            registry.live.get_or_insert(&run.run_id).set_waiting(true);
        }
    }
    Ok(())
}

/// Ends what was told to stop while it waited by who could not end it: a process that died then, or an operator. Gives what else
/// waits.
pub(super) async fn end_told_to_stop(
    registry: &Arc<RunRegistry>,
    parts: &RuntimeParts,
) -> Result<Vec<RunStanding>, RunError> {
    let mut waiting = parts.query.standing(None, &Owner::None).await?;
    waiting.retain(|run| !run.status.is_owned());
    let (told, waiting): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|run| run.told_to_stop);
    for run in &told {
        match parts.query.get(&run.run_id, &Owner::None).await {
            Ok(Some(run)) if run.status == RunStatus::Pending => {
                end_unstarted(&run, registry, parts).await
            }
            Ok(_) => {}
            // Nobody can end what cannot be read, but the store.
            Err(StoreError::Failed(why)) => {
                tracing::error!(run_id = %run.run_id, why, "a run that was told to stop while it waited cannot be read");
                parts
                    .create
                    .request_cancel(&run.run_id, CancelAction::Interrupt, parts.clock.now())
                    .await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(waiting)
}

/// What became of an end.
#[derive(Debug)]
pub(super) enum Ending {
    /// It is durable.
    Stored,
    /// The run is over by somebody else's word, or belongs to another attempt.
    Refused,
    /// The store failed; this is to be written yet.
    Later(Box<RunCommit>),
}

/// Ends one run that this process owns and nobody executes, because of `why`.
pub(super) async fn end_orphan(
    run: &RunRecord,
    reason: &'static str,
    why: &str,
    parts: &RuntimeParts,
) -> Ending {
    let rolled_back = run.cancel == Some(CancelAction::Rollback);
    // A run that waits for its first turn has no hold on its thread: another one may be writing it.
    let writes = run.holds_thread() && !rolled_back;
    let (checkpoints, events) = if writes {
        restored_input(run, parts).await
    } else {
        Default::default()
    };
    let (status, error, stop_reason) = match run.cancel {
        Some(CancelAction::Interrupt) => (RunStatus::Interrupted, None, reason),
        Some(CancelAction::Rollback) => (
            RunStatus::Error,
            Some("Rolled back by user".to_owned()),
            ROLLED_BACK,
        ),
        None => (RunStatus::Error, Some(why.to_owned()), reason),
    };
    let webhook = webhook_of(run, error.as_deref());
    let commit = RunCommit {
        events,
        checkpoints,
        end: Some(RunEnd {
            status,
            error,
            error_name: None,
            stop_reason: Some(stop_reason.to_owned()),
            completion: run.completion.clone(),
            thread_status: if rolled_back {
                ThreadStatus::Idle
            } else {
                ThreadStatus::after(status, false)
            },
            title: None,
            webhook,
            kept_values: None,
            discard_checkpoints: rolled_back,
            forget_calls: true,
        }),
        ..RunCommit::new(
            run.run_id.clone(),
            run.thread_id.clone(),
            run.attempt,
            parts.clock.now(),
        )
    };
    tracing::warn!(run_id = %run.run_id, thread_id = %run.thread_id, %status, reason = stop_reason, "ending a run that nobody executes");
    let ending = store_end(commit, parts).await;
    if rolled_back && let Err(error) = parts.events.delete_run(&run.thread_id, &run.run_id).await {
        tracing::warn!(run_id = %run.run_id, %error, "the journal rows of a rolled-back run stay");
    }
    ending
}

/// Stores an end, if the store is there.
pub(super) async fn store_end(commit: RunCommit, parts: &RuntimeParts) -> Ending {
    match parts.commit.commit(commit.clone()).await {
        Ok(()) => {
            fail_points::pass("orphan.ended");
            Ending::Stored
        }
        Err(CommitError::Store(error)) => {
            tracing::error!(run_id = %commit.run_id, %error, "the end of a run cannot be stored yet");
            Ending::Later(Box::new(commit))
        }
        Err(refused) => {
            tracing::info!(run_id = %commit.run_id, reason = %refused, "an unfinished run was ended by somebody else");
            Ending::Refused
        }
    }
}

impl Ending {
    /// Waits until the end is durable, for as long as the process lives. `false` when it is not this one that ends the run.
    pub(super) async fn stored(self, parts: &RuntimeParts) -> bool {
        match self {
            Self::Stored => true,
            Self::Refused => false,
            Self::Later(end) => {
                let stored = match until_stored(&end, parts).await {
                    Ok(()) => true,
                    // The reply to an earlier try may have been lost, its writing was not.
                    Err(CommitError::AlreadyTerminal(_)) => is_written(&end, parts).await,
                    Err(_) => false,
                };
                if stored {
                    tracing::info!(run_id = %end.run_id, "the end of the run is stored at last");
                }
                stored
            }
        }
    }
}

/// Tells the observer of a stored end of a run that nobody executes: that it failed because of `why`, or else was cancelled.
pub(super) async fn tell_end(run: &RunRecord, why: Option<&str>, parts: &RuntimeParts) {
    let completion = run.completion.clone();
    let kind = match why {
        Some(error) => LifecycleKind::RunFailed {
            error: error.to_owned(),
            completion,
        },
        None => LifecycleKind::RunCancelled { completion },
    };
    RunLifecycleEvent::of(run, kind)
        .tell(&*parts.observer)
        .await;
}

/// Whether the run ended as `commit` says; one that cannot be read is somebody else's to tell of.
async fn is_written(commit: &RunCommit, parts: &RuntimeParts) -> bool {
    let status = commit.end.as_ref().map(|end| end.status);
    match parts.query.get(&commit.run_id, &Owner::None).await {
        Ok(run) => {
            run.is_some_and(|run| run.attempt == commit.attempt && Some(run.status) == status)
        }
        Err(error) => {
            tracing::warn!(run_id = %commit.run_id, %error, "whether the end of a run was stored cannot be found out");
            false
        }
    }
}

/// Tries to store an end for as long as the process lives. A store error says that the process ends.
pub(super) async fn until_stored(end: &RunCommit, parts: &RuntimeParts) -> Result<(), CommitError> {
    let stop = parts.tasks.token();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return Err(StoreError::Unavailable("the process ends".to_owned()).into()),
            () = tokio::time::sleep(END_LATER) => {}
        }
        match parts.commit.commit(end.clone()).await {
            Err(CommitError::Store(_)) => {}
            ended => return ended,
        }
    }
}

/// The question that a run was made with, as the journal has it.
pub(super) async fn journaled_question(
    thread: &ThreadId,
    run: &RunId,
    parts: &RuntimeParts,
) -> Result<Option<RunEvent>, StoreError> {
    journaled(HUMAN_INPUT, thread, run, parts).await
}

/// Whether the journal says which memory the run was shown.
pub(super) async fn is_memory_journaled(
    thread: &ThreadId,
    run: &RunId,
    parts: &RuntimeParts,
) -> Result<bool, StoreError> {
    Ok(journaled(MEMORY_CONTEXT, thread, run, parts)
        .await?
        .is_some())
}

/// The first row of this type that a run has.
async fn journaled(
    event_type: &str,
    thread: &ThreadId,
    run: &RunId,
    parts: &RuntimeParts,
) -> Result<Option<RunEvent>, StoreError> {
    let event_types = vec![event_type.to_owned()];
    let query = EventQuery {
        run_id: Some(run.clone()),
        limit: 1,
        event_types,
        ..EventQuery::default()
    };
    Ok(parts.events.list(thread, &query, &Owner::None).await?.pop())
}

/// What the webhook of a run is told that nobody executed to its end.
pub(super) fn webhook_of(run: &RunRecord, error: Option<&str>) -> Option<WebhookCall> {
    let error = error.map(|text| (LOST_ERROR.to_owned(), text.to_owned()));
    run.webhook.clone().map(|url| WebhookCall {
        url,
        started_at: run.updated_at,
        values: None,
        error,
    })
}

/// What [`lost_input`] gives, or nothing when that cannot be had: an end that waits for ever is worse than one without the input.
pub(super) async fn restored_input(
    run: &RunRecord,
    parts: &RuntimeParts,
) -> (Vec<CheckpointWrite>, Vec<NewRunEvent>) {
    let mut tries = 0;
    loop {
        let error = match lost_input(run, parts).await {
            Ok(restored) => return restored,
            Err(error) => error,
        };
        tries += 1;
        let away = matches!(
            error,
            RunError::Checkpoint(CheckpointError::Store(_))
                | RunError::Store(StoreError::Unavailable(_))
        );
        if !away || tries == INPUT_TRIES {
            tracing::error!(run_id = %run.run_id, thread_id = %run.thread_id, %error, "the input of a lost run cannot join its thread");
            return Default::default();
        }
        tracing::warn!(run_id = %run.run_id, %error, "the input of a lost run cannot join its thread yet");
        tokio::time::sleep(INPUT_PAUSE).await;
    }
}

/// The input of a run that has no checkpoint of its own yet, as a checkpoint and a journal row.
async fn lost_input(
    run: &RunRecord,
    parts: &RuntimeParts,
) -> Result<(Vec<CheckpointWrite>, Vec<NewRunEvent>), RunError> {
    let messages = accepted_messages(&run.kwargs);
    let newest = parts
        .checkpointer
        .list_meta(
            &run.thread_id,
            &HistoryQuery {
                limit: 1,
                ..HistoryQuery::default()
            },
        )
        .await?;
    if messages.is_empty() || newest.first().is_some_and(|meta| has_input_of(run, meta)) {
        return Ok((Vec::new(), Vec::new()));
    }
    let head = parts.checkpointer.get(&run.thread_id, None).await?;
    if let Some(head) = &head {
        parts.ids.heed(&head.meta.checkpoint_id);
    }
    let (mut state, mut log_tail, parent, step) = match head {
        Some(head) => (
            head.state,
            head.log_tail,
            Some(head.meta.checkpoint_id),
            head.meta.step + 1,
        ),
        None => (
            ThreadState::default(),
            parts.checkpointer.log_tail(&run.thread_id).await?,
            None,
            -1,
        ),
    };
    let journaled = journaled_question(&run.thread_id, &run.run_id, parts).await?;
    let mut messages: Vec<Message> = messages
        .into_iter()
        .map(|message| identified(message, parts))
        .collect();
    // With durability `exit` the journal has the question although no checkpoint does: it stays the same message.
    let known = journaled
        .as_ref()
        .and_then(|row| serde_json::from_value::<Message>(row.event.content.clone()).ok());
    if let (Some(known), Some(last)) = (
        known,
        messages.iter_mut().rfind(|message| message.is_human()),
    ) {
        *last = known;
    }
    let ids: Vec<Option<String>> = messages.iter().map(|message| message.id.clone()).collect();
    if let Err(error) = state.apply(StateUpdate::messages(messages), &*parts.ids) {
        tracing::warn!(run_id = %run.run_id, %error, "the accepted input of a lost run cannot be reduced");
        return Ok((Vec::new(), Vec::new()));
    }
    let meta = CheckpointMeta {
        checkpoint_id: parts.ids.checkpoint_id(),
        thread_id: run.thread_id.clone(),
        parent_id: parent,
        run_id: Some(run.run_id.clone()),
        source: CheckpointSource::Input,
        step,
        next: Vec::new(),
        machine: None,
        metadata: serde_json::Map::new(),
        created_at: parts.clock.now(),
    };
    let event = state
        .messages()
        .iter()
        .rfind(|message| message.is_human() && ids.contains(&message.id))
        .map(|message| NewRunEvent {
            thread_id: run.thread_id.clone(),
            run_id: run.run_id.clone(),
            user_id: run.user_id.clone(),
            event_type: HUMAN_INPUT.to_owned(),
            category: category::MESSAGE.to_owned(),
            content: serde_json::to_value(message).unwrap_or(Value::Null),
            metadata: serde_json::Map::new(),
            created_at: run.created_at,
        });
    let event = event.filter(|_| journaled.is_none());
    Ok((
        vec![CheckpointWrite::plan(meta, &mut state, &mut log_tail)],
        event.into_iter().collect(),
    ))
}

/// The messages of the stored request.
fn accepted_messages(kwargs: &Value) -> Vec<Message> {
    match kwargs.pointer("/input/messages") {
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(|item| Message::coerce(item.clone()).ok())
            .collect(),
        Some(single @ (Value::Object(_) | Value::String(_))) => {
            Message::coerce(single.clone()).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Whether the checkpoint is the run's own and not the one from before its input.
fn has_input_of(run: &RunRecord, meta: &CheckpointMeta) -> bool {
    meta.run_id.as_ref() == Some(&run.run_id) && meta.source != CheckpointSource::Input
}

/// The message with an id, made now if the client gave none.
fn identified(message: Message, parts: &RuntimeParts) -> Message {
    if message.id.is_some() {
        message
    } else {
        message.with(|body| body.id = Some(parts.ids.message_id()))
    }
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
pub(super) mod tests;
