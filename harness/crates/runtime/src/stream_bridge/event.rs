//! Events, and the items that a subscriber receives.

use std::borrow::Cow;

use super::data::EventData;
use super::event_id::EventId;
use super::resume::Gap;
use super::status::TerminalKind;
use deerflow_core::ids::RunId;

/// Stream of one attempt of a run. Attempts older than the newest known one are rejected.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StreamKey {
    /// Run that the events belong to.
    pub run_id: RunId,
    /// Attempt that publishes, from 1.
    pub attempt: u32,
}

/// Name of an event on the wire, such as `values` or `messages|tools:1`.
pub type EventName = Cow<'static, str>;

/// One event. The data is JSON, serialized once and shared by all subscribers.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent {
    /// Position of the event in the run.
    pub id: EventId,
    /// Name of the event.
    pub event: EventName,
    /// JSON without line breaks.
    pub data: EventData,
}

/// Item that a subscriber receives.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem {
    /// An event.
    Event(StreamEvent),
    /// No event for the requested time; shows that the stream is alive.
    Heartbeat,
    /// The events between the cursor and the oldest retained one are no longer available. The
    /// stream closes after this item; an end follows only if the run has no event to resume from.
    Gap(Gap),
    /// The end of the run: exactly one, and the last item.
    End(TerminalKind),
    /// The bridge shut down, or disconnected a reader that was too slow. Not an end: the client
    /// should reconnect.
    Aborted,
}

/// The stream is alive without new events.
pub const HEARTBEAT_SENTINEL: StreamItem = StreamItem::Heartbeat;
/// The run ended.
pub const END_SENTINEL: StreamItem = StreamItem::End(TerminalKind::End);
/// The run was cancelled.
pub const CANCELLED_SENTINEL: StreamItem = StreamItem::End(TerminalKind::Cancel);
