//! The journal of threads, in the database or as JSON lines.


mod sql;


pub(crate) use sql::{append_events, delete_thread_events};
pub use sql::SqlRunEventStore;
