//! Streams of runs and threads, and waiting for the end of a run.

mod resubscribe;
mod source_stream;
pub(crate) mod stream_service;
mod terminal_fallback;
mod thread_cursor;
pub(crate) mod thread_events;
mod thread_items;
pub(crate) mod thread_service;
pub(crate) mod wait_service;

pub use stream_service::RunStream;
pub use thread_cursor::{ThreadCursor, ThreadEventId};
pub use thread_items::{ThreadItem, ThreadRunItem};
pub use wait_service::WaitOutcome;

#[cfg(test)]
mod shared_status_tests;
