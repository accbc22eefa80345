//! Bounds the messages that a request brings, before its run is admitted.

use super::error::RunError;
use super::parts::{RunLimits, RuntimeParts};
use super::spec::{RunInput, RunScope, RunSpec, Visit};
use crate::state::StateUpdate;

/// The number of messages from which on the thread is read to check its length before the run is accepted. The run itself checks
/// every input, so a shorter one does not cost a read.
const CHECKED_BEFORE_ADMISSION: usize = 100;

/// Refuses an input with more messages than one request may bring, or than the thread may hold with it.
pub(super) async fn check(
    spec: &RunSpec,
    limits: &RunLimits,
    parts: &RuntimeParts,
) -> Result<(), RunError> {
    let count = message_count(&spec.input);
    if count > limits.max_input_messages {
        return Err(RunError::TooManyMessages {
            count,
            limit: limits.max_input_messages,
        });
    }
    let (RunScope::Stateful { thread_id, .. }, Some(update)) = (&spec.scope, update(&spec.input))
    else {
        return Ok(());
    };
    if count < CHECKED_BEFORE_ADMISSION {
        return Ok(());
    }
    // The thread holds at most as many messages as its log.
    let log_tail = parts.checkpointer.log_tail(thread_id).await?;
    if log_tail.saturating_add(count as u64) <= limits.max_thread_messages as u64 {
        return Ok(());
    }
    let found = parts.checkpointer.get(thread_id, None).await?;
    let mut state = found.map(|snapshot| snapshot.state).unwrap_or_default();
    Ok(state.apply_within(update.clone(), limits.max_thread_messages, &*parts.ids)?)
}

fn update(input: &RunInput) -> Option<&StateUpdate> {
    match input {
        RunInput::Update(update) => Some(update),
        RunInput::Command(command) => Some(&command.update),
        RunInput::Resume(_) | RunInput::Continue => None,
    }
}

/// Counts the messages of an input, those included that it sends to nodes.
fn message_count(input: &RunInput) -> usize {
    let visits: &[Visit] = match input {
        RunInput::Command(command) => &command.goto,
        _ => &[],
    };
    let sent = |visit: &Visit| {
        visit
            .input
            .as_ref()
            .and_then(|input| input.get("messages")?.as_array())
            .map_or(0, Vec::len)
    };
    update(input).map_or(0, |update| update.messages.len()) + visits.iter().map(sent).sum::<usize>()
}
