//! The database: opening, locking, migrations, reads and writes.

pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod connect;
pub(crate) mod disk_watch;
pub(crate) mod entity;
pub(crate) mod error;
pub(crate) mod fact_index;
pub(crate) mod free_pages;
pub(crate) mod json;
pub(crate) mod long_values;
pub(crate) mod migration;
pub(crate) mod open_writer;
pub(crate) mod pool;
pub(crate) mod prepared;
pub(crate) mod prepared_readers;
pub(crate) mod probe;
pub(crate) mod queue_slot;
pub(crate) mod quotas;
pub(crate) mod readiness;
pub(crate) mod session_lock;
pub(crate) mod shared_access;
pub(crate) mod space;
pub(crate) mod statement_batch;
pub(crate) mod text_lock;
pub(crate) mod tx;
pub(crate) mod write_job;
pub(crate) mod write_queue;
pub(crate) mod writer_thread;
pub(crate) mod writes;

#[cfg(test)]
mod schema_tests;
#[cfg(test)]
pub(crate) mod scratch_schema;
