//! Operations of a log that its node publishes: push events, end the stream, send appends, apply replies.

use bytes::Bytes;
use deerflow_runtime::stream_bridge::{
    BridgeError, EventData, EventId, EventName, LogOutline, StreamStatus, TerminalKind,
};
use tokio::time::Instant;

use super::options::RedisOptions;
use super::protocol::{Append, Reply};
use super::publisher::{BATCH_EVENTS, PushRefusal};
use super::run_log::RunLog;
use super::stream_head::StreamHead;
use super::stream_state::StreamState;

impl RunLog {
    /// Numbers an event. The caller must then start a sender: [`RunLog::claim_sending`].
    pub(super) fn push(
        &self,
        attempt: u32,
        event: EventName,
        data: EventData,
        options: &RedisOptions,
    ) -> Result<EventId, PushRefusal> {
        self.locked(|state| {
            state.admit(self.run_id(), attempt)?;
            Ok(state.push(attempt, event, data, options))
        })
    }

    /// Ends the stream, after an optional error event. The caller must then start a sender.
    pub(super) fn end(
        &self,
        attempt: u32,
        kind: TerminalKind,
        error: Option<Bytes>,
        options: &RedisOptions,
    ) -> Result<(), PushRefusal> {
        self.locked(|state| {
            state.admit(self.run_id(), attempt)?;
            if let Some(data) = error {
                state.push(attempt, EventName::Borrowed("error"), data.into(), options);
            }
            state
                .publisher
                .iter_mut()
                .for_each(|publisher| publisher.end = Some(kind));
            Ok(())
        })
    }

    /// Ends a published stream as cancelled if it has no end yet. Returns `true` if this node
    /// publishes it.
    pub(super) fn cancel(&self) -> bool {
        self.locked(|state| {
            state
                .publisher
                .iter_mut()
                .for_each(|publisher| _ = publisher.end.get_or_insert(TerminalKind::Cancel));
            state.publisher.is_some()
        })
    }

    /// Suspends the idle timeout until the next event. Returns `true` if this node publishes the
    /// stream.
    pub(super) fn await_input(&self) -> bool {
        self.locked(|state| {
            if state.head.status == StreamStatus::Active {
                state.head.status = StreamStatus::AwaitingInput;
                state
                    .publisher
                    .iter_mut()
                    .for_each(|publisher| publisher.awaiting_input = true);
            }
            state.publisher.is_some()
        })
    }

    /// Returns `true` if this node publishes for `attempt`.
    pub(super) fn publishes(&self, attempt: u32) -> bool {
        self.locked(|state| {
            state
                .publisher
                .as_ref()
                .is_some_and(|publisher| publisher.attempt == attempt)
        })
    }

    /// Fails unless the stream ended, or will end, as `attempt` requested.
    pub(super) fn ended_by(&self, attempt: u32, kind: TerminalKind) -> Result<(), BridgeError> {
        self.locked(|state| match state.head.ended() {
            None if state.publisher.is_none() && state.head.attempt > attempt => {
                Err(BridgeError::Fenced {
                    run_id: self.run_id().clone(),
                    attempt,
                    current: state.head.attempt,
                })
            }
            Some(other) if other != kind => Err(BridgeError::Ended(self.run_id().clone())),
            _ => Ok(()),
        })
    }

    /// Checks, with the local state, that `attempt` could claim the stream.
    pub(super) fn may_claim(&self, attempt: u32) -> Result<(), BridgeError> {
        self.locked(|state| match state.admit(self.run_id(), attempt) {
            Ok(()) | Err(PushRefusal::NotPublisher) => {
                state.claiming = state.claiming.max(attempt);
                Ok(())
            }
            Err(PushRefusal::Bridge(error)) => Err(error),
        })
    }

    /// Makes `attempt` the publisher, after the events of the server and the durable log. `known`
    /// is `None` if the server did not answer.
    pub(super) fn become_publisher(
        &self,
        attempt: u32,
        known: Option<StreamHead>,
        logged: &LogOutline,
    ) {
        self.locked(|state| state.become_publisher(attempt, known, logged));
    }

    /// Returns `true` if the caller must send: this node publishes, and no sender is running.
    pub(super) fn claim_sending(&self) -> bool {
        let (begins, full) = self.locked(|state| {
            let unsent = state.head.tail
                - state
                    .publisher
                    .as_ref()
                    .map_or(state.head.tail, |publisher| publisher.acked);
            let begins = state
                .publisher
                .as_mut()
                .is_some_and(|publisher| !std::mem::replace(&mut publisher.sending, true));
            (
                begins,
                unsent >= BATCH_EVENTS
                    || state
                        .publisher
                        .as_ref()
                        .is_some_and(|publisher| publisher.end.is_some()),
            )
        });
        if full {
            self.sender_wakeup.notify_one();
        }
        begins
    }

    /// Returns the next append; `None` ends the sender.
    pub(super) fn next_append(&self) -> Option<Append> {
        self.locked(StreamState::next_append)
    }

    /// Returns `true` if the next append should wait for more events.
    pub(super) fn may_batch(&self) -> bool {
        self.locked(|state| {
            let Some(publisher) = &state.publisher else {
                return false;
            };
            !publisher.urgent
                && publisher.end.is_none()
                && state.head.tail - publisher.acked < BATCH_EVENTS
        })
    }

    /// Applies the server's reply to `sent`. The caller notifies viewers.
    pub(super) fn apply_reply(&self, sent: &Append, reply: Reply) {
        self.locked(|state| state.apply_reply(sent, reply));
    }

    /// Records that the server did not answer. The caller notifies viewers, which may now see
    /// unsent events.
    pub(super) fn note_failure(&self) {
        self.locked(|state| {
            if let Some(publisher) = &mut state.publisher {
                publisher.failing_since.get_or_insert_with(Instant::now);
            }
        });
    }

    /// Marks the sender as stopped, so that another can start.
    pub(super) fn release_sending(&self) {
        self.locked(|state| {
            state
                .publisher
                .iter_mut()
                .for_each(|publisher| publisher.sending = false)
        });
    }

    /// Returns `true` if all events are sent, or the server is known to be unavailable. Otherwise
    /// makes the sender send at once.
    pub(super) fn is_settled(&self) -> bool {
        let settled = self.locked(|state| {
            let tail = state.head.tail;
            state.publisher.as_mut().is_none_or(|publisher| {
                let settled = publisher.acked == tail && publisher.end.is_none()
                    || publisher.exposes_unsent()
                    || publisher.has_spilled(tail);
                publisher.urgent |= !settled;
                settled
            })
        });
        if !settled {
            self.sender_wakeup.notify_one();
        }
        settled
    }
}
