//! Items of thread subscriptions.

use super::thread_cursor::ThreadEventId;
use crate::definition::RunRecord;
use crate::stream_bridge::{StreamEvent, TerminalKind};
use deerflow_core::ids::RunId;

/// Item of a thread subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum ThreadItem {
    /// Event of a run.
    Event(ThreadEventId, StreamEvent),
    /// End of a run.
    RunDone(ThreadEventId, RunId),
    /// Sent after an interval without events.
    Heartbeat,
}

/// Item of a subscription that also reports the runs themselves.
#[derive(Debug, Clone, PartialEq)]
pub enum ThreadRunItem {
    /// The stream of this run is opened. After an interruption it is opened again.
    Opened(Box<RunRecord>),
    /// Event of the opened run.
    Event(ThreadEventId, StreamEvent),
    /// The next events of the opened run are no longer available.
    Gap,
    /// End of the opened run.
    Ended(ThreadEventId, TerminalKind),
    /// A run that has ended and whose events are no longer available.
    Skipped(ThreadEventId, Box<RunRecord>),
    /// No run that has started has unsent events. Sent once per interval without such a run.
    Idle,
    /// Sent after an interval without events.
    Heartbeat,
}
