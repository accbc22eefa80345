//! The journal of events outside of the database.

pub(crate) mod jsonl;
pub(crate) mod jsonl_file;
