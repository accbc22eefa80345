//! Files of the data directory: the lock, the disk watch, the reserve, and the JSONL journal.

pub(crate) mod data_lock;
pub(crate) mod disk;
pub(crate) mod file_id;
pub(crate) mod jsonl;
pub(crate) mod jsonl_file;
pub(crate) mod reserve;
