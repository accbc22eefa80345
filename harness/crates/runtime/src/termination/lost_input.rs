//! Restores the accepted input of a run whose process died before it wrote a checkpoint.

use std::time::Duration;

use serde_json::Value;

use crate::callbacks::{HUMAN_INPUT, MEMORY_CONTEXT};
use crate::checkpoint::{
    CheckpointError, CheckpointMeta, CheckpointSource, CheckpointWrite, HistoryQuery,
};
use crate::definition::{RunRecord, StoreError};
use crate::kernel::RunError;
use crate::ports::{EventQuery, NewRunEvent, RunEvent, RuntimePorts, category};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_core::messages::Message;
use deerflow_core::state::{StateUpdate, ThreadState};

/// Maximum number and interval of reads of the thread before its lost input is restored.
const MAX_INPUT_READS: u32 = 20;

const INPUT_READ_INTERVAL: Duration = Duration::from_millis(500);

/// Returns the journal row of the human message of a run, if there is one.
pub(crate) async fn journaled_human_input(
    thread: &ThreadId,
    run: &RunId,
    ports: &RuntimePorts,
) -> Result<Option<RunEvent>, StoreError> {
    journaled(HUMAN_INPUT, thread, run, ports).await
}

/// Reports whether the journal records the memory context of the run.
pub(crate) async fn is_memory_journaled(
    thread: &ThreadId,
    run: &RunId,
    ports: &RuntimePorts,
) -> Result<bool, StoreError> {
    Ok(journaled(MEMORY_CONTEXT, thread, run, ports)
        .await?
        .is_some())
}

/// Returns the first journal row of this type in a run.
async fn journaled(
    event_type: &str,
    thread: &ThreadId,
    run: &RunId,
    ports: &RuntimePorts,
) -> Result<Option<RunEvent>, StoreError> {
    let event_types = vec![event_type.to_owned()];
    let query = EventQuery {
        run_id: Some(run.clone()),
        limit: 1,
        event_types,
        ..EventQuery::default()
    };
    Ok(ports.events.list(thread, &query, &Owner::None).await?.pop())
}

/// Returns the result of [`lost_input`], or an empty result if its retries fail: the run must end
/// even without its input.
pub(crate) async fn restored_input(
    run: &RunRecord,
    ports: &RuntimePorts,
) -> (Vec<CheckpointWrite>, Vec<NewRunEvent>) {
    let mut tries = 0;
    loop {
        let error = match lost_input(run, ports).await {
            Ok(restored) => return restored,
            Err(error) => error,
        };
        tries += 1;
        let is_outage = matches!(
            error,
            RunError::Checkpoint(CheckpointError::Store(_))
                | RunError::Store(StoreError::Unavailable(_))
        );
        if !is_outage || tries == MAX_INPUT_READS {
            tracing::error!(
                run_id = %run.run_id, thread_id = %run.thread_id, %error,
                "cannot add the input of a lost run to its thread"
            );
            return Default::default();
        }
        tracing::warn!(
            run_id = %run.run_id, %error,
            "cannot add the input of a lost run to its thread yet"
        );
        tokio::time::sleep(INPUT_READ_INTERVAL).await;
    }
}

/// Builds a checkpoint and a journal row of the input of a run that has no checkpoint of its own.
async fn lost_input(
    run: &RunRecord,
    ports: &RuntimePorts,
) -> Result<(Vec<CheckpointWrite>, Vec<NewRunEvent>), RunError> {
    // An execution does not retain the echo of its request.
    let stored = ports.query.get(&run.run_id, &Owner::None).await?;
    let messages = stored.map_or_else(Vec::new, |stored| {
        accepted_messages(&stored.kwargs.to_value())
    });
    let newest = ports
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
    let head = ports.checkpointer.get(&run.thread_id, None).await?;
    if let Some(head) = &head {
        ports.ids.heed(&head.meta.checkpoint_id);
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
            ports.checkpointer.log_tail(&run.thread_id).await?,
            None,
            -1,
        ),
    };
    let journaled = journaled_human_input(&run.thread_id, &run.run_id, ports).await?;
    let mut messages: Vec<Message> = messages
        .into_iter()
        .map(|message| message.identified(&*ports.ids))
        .collect();
    // With durability `exit`, the journal has the message although no checkpoint has it. It must
    // stay the same message.
    let journaled_message = journaled
        .as_ref()
        .and_then(|row| serde_json::from_value::<Message>(row.event.content.to_value()).ok());
    if let (Some(journaled_message), Some(last)) = (
        journaled_message,
        messages.iter_mut().rfind(|message| message.is_human()),
    ) {
        *last = journaled_message;
    }
    let ids: Vec<Option<String>> = messages.iter().map(|message| message.id.clone()).collect();
    if let Err(error) = state.apply(StateUpdate::messages(messages), &*ports.ids) {
        tracing::warn!(
            run_id = %run.run_id, %error,
            "cannot reduce the accepted input of a lost run"
        );
        return Ok((Vec::new(), Vec::new()));
    }
    let meta = CheckpointMeta {
        checkpoint_id: ports.ids.checkpoint_id(),
        thread_id: run.thread_id.clone(),
        parent_id: parent,
        run_id: Some(run.run_id.clone()),
        source: CheckpointSource::Input,
        step,
        next: Vec::new(),
        machine: None,
        metadata: serde_json::Map::new(),
        created_at: ports.clock.now(),
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
            content: message.clone().into(),
            metadata: serde_json::Map::new(),
            created_at: run.created_at,
        });
    let event = event.filter(|_| journaled.is_none());
    Ok((
        vec![CheckpointWrite::plan(meta, &mut state, &mut log_tail)],
        event.into_iter().collect(),
    ))
}

/// Reads the messages of the stored request.
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

/// Reports whether this run wrote the checkpoint, and whether the checkpoint contains its input.
fn has_input_of(run: &RunRecord, meta: &CheckpointMeta) -> bool {
    meta.run_id.as_ref() == Some(&run.run_id) && meta.source != CheckpointSource::Input
}
