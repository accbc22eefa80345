//! Port that carries the events of a run to its viewers: replayable, resumable, with an explicit
//! end. This module contains the contract. The in-memory adapter is in
//! [`in_memory`](crate::in_memory), other adapters are in crates of their own.
//!
//! To add an adapter: implement [`StreamBridge`] in a separate crate, name it
//! `{Technology}StreamBridge`, and run every function of `testkit::stream_bridge` against it. The
//! server chooses its adapter in `app/bridges/src/factory.rs`.

mod bridge;
mod data;
mod error;
mod event;
mod event_id;
mod fan_out;
mod heartbeat;
mod log;
mod resume;
mod status;

pub use bridge::{StreamBridge, Subscription};
pub use data::EventData;
pub use error::BridgeError;
pub use event::{
    CANCELLED_SENTINEL, END_SENTINEL, EventName, HEARTBEAT_SENTINEL, StreamEvent, StreamItem,
    StreamKey,
};
pub use event_id::{EventId, MalformedCursor};
pub use fan_out::{FanOut, Listener};
pub use heartbeat::Heartbeat;
pub use log::{LogBatch, LogOutline, LogPage, LogRange, StreamLog, StreamLogError, locate_in};
pub use resume::{Gap, ResumeFrom, ResumeResult};
pub use status::{StreamStatus, TerminalKind};
