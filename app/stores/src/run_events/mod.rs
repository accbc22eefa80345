//! The journal of threads, in the database or as JSON lines.

mod jsonl;
mod jsonl_file;
mod sql;

pub use jsonl::JsonlRunEventStore;
pub use sql::SqlRunEventStore;
pub(crate) use sql::{add_events, delete_thread_events};
