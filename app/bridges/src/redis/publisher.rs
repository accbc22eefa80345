//! State of the publisher of a stream: which events the server has acknowledged, and what is still to
//! be sent.

use std::time::Duration;

use deerflow_runtime::stream_bridge::{BridgeError, TerminalKind};
use tokio::time::Instant;

use super::spill_state::SpillState;

/// Number of events that are sent without waiting for more.
pub(super) const BATCH_EVENTS: u64 = 16;
/// Maximum number of events of one append, for a backlog after an outage.
pub(super) const MAX_APPEND_EVENTS: usize = 256;
pub(super) const MAX_APPEND_BYTES: usize = 1024 * 1024;
/// Time without an answer of the server after which viewers on this node see unsent events from
/// memory, if the durable log does not accept them.
pub(super) const EXPOSE_UNSENT_AFTER: Duration = Duration::from_secs(1);

/// State of the publishing node in addition to the stream head, which counts the published events.
#[derive(Debug)]
pub(super) struct Publisher {
    pub(super) attempt: u32,
    /// The server has confirmed that this attempt publishes the stream, and returned its position.
    pub(super) claimed: bool,
    /// Sequence number of the newest event that the server has acknowledged.
    pub(super) acked: u64,
    /// The end that is not sent yet.
    pub(super) end: Option<TerminalKind>,
    /// The server must record that the run waits for user input.
    pub(super) awaiting_input: bool,
    /// Time of the server's last answer for this stream.
    pub(super) answered_at: Instant,
    /// Start of the current outage.
    pub(super) failing_since: Option<Instant>,
    /// State of the durable log.
    pub(super) spilling: SpillState,
    /// A sender is running.
    pub(super) sending: bool,
    /// A caller waits for the unsent events.
    pub(super) urgent: bool,
}

/// Reason why an event was refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PushRefusal {
    /// The attempt must claim the stream first.
    NotPublisher,
    /// The bridge refuses the event.
    Bridge(BridgeError),
}

impl Publisher {
    pub(super) fn of(attempt: u32, claimed: bool, acked: u64, spilling: SpillState) -> Self {
        Self {
            attempt,
            claimed,
            acked,
            end: None,
            awaiting_input: false,
            answered_at: Instant::now(),
            failing_since: None,
            spilling,
            sending: false,
            urgent: false,
        }
    }

    pub(super) fn is_sending(&self) -> bool {
        self.sending
    }

    /// Returns `true` if event numbers are final. A later attempt learns its first number from the
    /// server.
    pub(super) fn knows_position(&self) -> bool {
        self.claimed || self.attempt <= 1
    }

    /// Returns `true` if viewers see events that neither the server nor the durable log has.
    pub(super) fn exposes_unsent(&self) -> bool {
        let is_in_outage = self
            .failing_since
            .is_some_and(|since| since.elapsed() >= EXPOSE_UNSENT_AFTER);
        is_in_outage && self.knows_position() && !self.spilling.is_available()
    }

    /// Returns the sequence number of the newest event that the server or the durable log has.
    pub(super) fn stored_up_to(&self) -> u64 {
        self.acked.max(self.spilling.logged)
    }

    /// Returns `true` if there is an outage, and the log has all events up to `tail`, and the end
    /// if there is one.
    pub(super) fn has_spilled(&self, tail: u64) -> bool {
        self.failing_since.is_some()
            && self.spilling.logged == tail
            && (self.end.is_none() || self.spilling.ended)
    }

    /// Returns `true` if viewers may see an end that the server does not have yet.
    pub(super) fn exposes_end(&self) -> bool {
        self.exposes_unsent() || self.spilling.ended
    }
}
