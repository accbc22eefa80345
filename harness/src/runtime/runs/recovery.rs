//! After a crash: ends the runs that nobody works on any more, without losing what their callers were told was accepted.

use std::time::Duration;

use serde_json::Value;

use super::error::RunError;
use super::parts::RuntimeParts;
use super::queue::end_unstarted;
use super::record::{RunRecord, ThreadStatus};
use super::registry::RunRegistry;
use super::spec::CancelAction;
use super::status::RunStatus;
use super::store::{CommitError, NewRunEvent, RunCommit, RunEnd, WebhookCall, category};
use super::stored_end::terminal_of;
use crate::ids::RunId;
use crate::messages::Message;
use crate::runtime::actor_context::Owner;
use crate::runtime::checkpoint::{CheckpointMeta, CheckpointSource, CheckpointWrite, HistoryQuery};
use crate::runtime::serialization::error_frame;
use crate::runtime::stream_bridge::{BridgeError, ResumeFrom, ResumeResult, StreamKey, TerminalKind};
use crate::runtime::tasks::TaskKind;
use crate::state::{StateUpdate, ThreadState};

/// The stop reason of a run whose process died.
pub const ORPHAN_RECOVERED: &str = "orphan_recovered";

/// What is said of a run whose process died.
pub(super) const LOST: &str = "the process that executed the run ended before it";

/// The stop reason of a run that was undone.
pub const ROLLED_BACK: &str = "rolled_back";

/// Ends every run that somebody owned as an error, or as interrupted where a cancel had been asked for. The input of a run that
/// died before its first checkpoint joins the thread now: it was acknowledged. What waits goes on waiting, unless it was told to
/// stop.
pub(super) async fn end_orphans(registry: &RunRegistry, parts: &RuntimeParts) -> Result<usize, RunError> {
    let mut orphans = parts.query.unfinished().await?;
    for waiting in orphans.iter().filter(|run| !run.status.is_owned() && run.cancel.is_none()) {
        // Known from now on: who asks for its stream or its end waits for its turn.
        registry.live.get_or_insert(&waiting.run_id);
    }
    orphans.retain(|run| run.status.is_owned() || run.cancel.is_some());
    let count = orphans.len();
    let mut ended = Vec::new();
    for orphan in orphans {
        if !orphan.status.is_owned() {
            end_unstarted(&orphan, registry, parts).await;
            continue;
        }
        ended.push(orphan.run_id.clone());
        // One that cannot be ended must not keep the others, or the server, from going on.
        if let Err(error) = end_orphan(&orphan, LOST, parts).await {
            tracing::error!(run_id = %orphan.run_id, thread_id = %orphan.thread_id, %error, "a run left behind cannot be ended");
        }
    }
    // Beside the start, which does not wait for a bridge.
    let told = parts.clone();
    parts.tasks.spawn(TaskKind::Finish, "ends of lost runs", async move {
        for run_id in ended {
            tell_end(&run_id, &told).await;
        }
    });
    Ok(count)
}

/// Ends the stream, if it outlived its producer, of a run that the store has ended.
async fn tell_end(run_id: &RunId, parts: &RuntimeParts) {
    let run = match parts.query.get(run_id, &Owner::None).await {
        Ok(Some(run)) => run,
        Ok(None) => return,
        Err(error) => return tracing::warn!(%run_id, %error, "the end of a lost run cannot be told"),
    };
    let Some(kind) = terminal_of(&run) else { return };
    let known = parts.bridge.subscribe(run_id, ResumeFrom::Tail, Duration::ZERO).await;
    if known.is_ok_and(|stream| matches!(stream.resume, ResumeResult::Unknown | ResumeResult::Ended(_))) {
        return;
    }
    let error = (kind == TerminalKind::Error).then(|| error_frame("RunError", run.error.as_deref().unwrap_or(LOST)).data.into_bytes());
    let key = StreamKey { run_id: run.run_id, attempt: run.attempt };
    match parts.bridge.publish_terminal(&key, kind, error).await {
        Ok(()) | Err(BridgeError::Ended(_)) => {}
        Err(error) => tracing::warn!(%run_id, %error, "the end did not reach the stream"),
    }
}

/// Ends one run that nobody executes, because of `why`.
pub(super) async fn end_orphan(run: &RunRecord, why: &str, parts: &RuntimeParts) -> Result<(), RunError> {
    let rolled_back = run.cancel == Some(CancelAction::Rollback);
    let restored = if rolled_back { Ok((Vec::new(), Vec::new())) } else { lost_input(run, parts).await };
    let (checkpoints, events) = restored.unwrap_or_else(|error| {
        tracing::error!(run_id = %run.run_id, thread_id = %run.thread_id, %error, "the input of a lost run cannot join its thread");
        (Vec::new(), Vec::new())
    });
    let (status, error, stop_reason) = match run.cancel {
        Some(CancelAction::Interrupt) => (RunStatus::Interrupted, None, ORPHAN_RECOVERED),
        Some(CancelAction::Rollback) => (RunStatus::Error, Some("Rolled back by user".to_owned()), ROLLED_BACK),
        None => (RunStatus::Error, Some(why.to_owned()), ORPHAN_RECOVERED),
    };
    let webhook = webhook_of(run, error.as_deref());
    let commit = RunCommit {
        run_id: run.run_id.clone(),
        thread_id: run.thread_id.clone(),
        attempt: run.attempt,
        advance: None,
        events,
        checkpoints,
        end: Some(RunEnd {
            status,
            error,
            stop_reason: Some(stop_reason.to_owned()),
            completion: run.completion.clone(),
            thread_status: if rolled_back { ThreadStatus::Idle } else { ThreadStatus::after(status, false) },
            title: None,
            webhook,
            discard_checkpoints: rolled_back,
        }),
        batch: 0,
        at: parts.clock.now(),
    };
    match parts.commit.commit(commit).await {
        Ok(()) if rolled_back => parts.events.delete_run(&run.thread_id, &run.run_id).await?,
        Ok(()) => tracing::warn!(run_id = %run.run_id, thread_id = %run.thread_id, %status, "ended a run that its process left behind"),
        Err(CommitError::Store(error)) => return Err(error.into()),
        Err(refused) => tracing::info!(run_id = %run.run_id, reason = %refused, "an unfinished run was ended by somebody else"),
    }
    Ok(())
}

/// What the webhook of a run is told that nobody executed to its end.
pub(super) fn webhook_of(run: &RunRecord, error: Option<&str>) -> Option<WebhookCall> {
    let error = error.map(|text| ("RunError".to_owned(), text.to_owned()));
    run.webhook.clone().map(|url| WebhookCall { url, started_at: run.updated_at, values: None, error })
}

/// The input of a run that has no checkpoint of its own yet, as a checkpoint and a journal row.
async fn lost_input(run: &RunRecord, parts: &RuntimeParts) -> Result<(Vec<CheckpointWrite>, Vec<NewRunEvent>), RunError> {
    let messages = accepted_messages(&run.kwargs);
    let newest = parts.checkpointer.list_meta(&run.thread_id, &HistoryQuery { limit: 1, ..HistoryQuery::default() }).await?;
    if messages.is_empty() || newest.first().is_some_and(|meta| meta.run_id.as_ref() == Some(&run.run_id)) {
        return Ok((Vec::new(), Vec::new()));
    }
    let head = parts.checkpointer.get(&run.thread_id, None).await?;
    let (mut state, mut log_tail, parent, step) = match head {
        Some(head) => (head.state, head.log_tail, Some(head.meta.checkpoint_id), head.meta.step + 1),
        None => (ThreadState::default(), parts.checkpointer.log_tail(&run.thread_id).await?, None, -1),
    };
    let messages: Vec<Message> = messages.into_iter().map(|message| identified(message, parts)).collect();
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
    let event = state.messages().iter().rfind(|message| message.is_human() && ids.contains(&message.id)).map(|message| NewRunEvent {
        thread_id: run.thread_id.clone(),
        run_id: run.run_id.clone(),
        user_id: run.user_id.clone(),
        event_type: "llm.human.input".to_owned(),
        category: category::MESSAGE.to_owned(),
        content: serde_json::to_value(message).unwrap_or(Value::Null),
        metadata: serde_json::Map::new(),
        created_at: run.created_at,
    });
    Ok((vec![CheckpointWrite::plan(meta, &mut state, &mut log_tail)], event.into_iter().collect()))
}

/// The messages of the stored request.
fn accepted_messages(kwargs: &Value) -> Vec<Message> {
    match kwargs.pointer("/input/messages") {
        Some(Value::Array(items)) => items.iter().filter_map(|item| Message::coerce(item.clone()).ok()).collect(),
        Some(single @ (Value::Object(_) | Value::String(_))) => Message::coerce(single.clone()).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// The message with an id, made now if the client gave none.
fn identified(message: Message, parts: &RuntimeParts) -> Message {
    if message.id.is_some() { message } else { message.with(|body| body.id = Some(parts.ids.message_id())) }
}
