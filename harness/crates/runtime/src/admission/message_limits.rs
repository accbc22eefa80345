//! Limits the number of messages in a request before its run is admitted.

use crate::definition::{GotoTarget, RunInput, RunLimits, RunRequest, RunScope};
use crate::kernel::RunError;
use crate::ports::RuntimePorts;
use deerflow_core::state::{Channels, StateUpdate};

/// Minimum number of messages for which the length of the thread is checked before admission, which
/// requires a read. The run itself checks every input.
const CHECKED_BEFORE_ADMISSION: usize = 100;

/// Rejects an input with more messages than one request may contain, or than fit into the thread.
/// `channels` are those of the run's agent.
pub(crate) async fn check(
    request: &RunRequest,
    channels: Channels,
    limits: &RunLimits,
    ports: &RuntimePorts,
) -> Result<(), RunError> {
    let count = message_count(&request.input);
    if count > limits.max_input_messages {
        return Err(RunError::TooManyMessages {
            count,
            limit: limits.max_input_messages,
        });
    }
    let (RunScope::Stateful { thread_id, .. }, Some(update)) =
        (&request.scope, update(&request.input))
    else {
        return Ok(());
    };
    if count < CHECKED_BEFORE_ADMISSION {
        return Ok(());
    }
    // A thread has at most as many messages as its log.
    let log_tail = ports.checkpointer.log_tail(thread_id).await?;
    if log_tail.saturating_add(count as u64) <= limits.max_thread_messages as u64 {
        return Ok(());
    }
    let stored = ports.checkpointer.get(thread_id, None).await?;
    let mut state = stored
        .map(|snapshot| snapshot.state)
        .unwrap_or_default()
        .defined_by(channels);
    Ok(state.apply_within(update.clone(), limits.max_thread_messages, &*ports.ids)?)
}

fn update(input: &RunInput) -> Option<&StateUpdate> {
    match input {
        RunInput::Update(update) => Some(update),
        RunInput::Command(command) => Some(&command.update),
        RunInput::Resume(_) | RunInput::Continue => None,
    }
}

/// Counts the messages of an input, including those that it sends to nodes.
fn message_count(input: &RunInput) -> usize {
    let visits: &[GotoTarget] = match input {
        RunInput::Command(command) => &command.goto,
        _ => &[],
    };
    let sent = |visit: &GotoTarget| {
        visit
            .input
            .as_ref()
            .and_then(|input| input.get("messages")?.as_array())
            .map_or(0, Vec::len)
    };
    update(input).map_or(0, |update| update.messages.len()) + visits.iter().map(sent).sum::<usize>()
}
