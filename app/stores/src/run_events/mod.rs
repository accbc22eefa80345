//! The journal of threads, in the database or as JSON lines.

mod sql;

pub use sql::SqlRunEventStore;
pub(crate) use sql::{append_events, delete_thread_events};
