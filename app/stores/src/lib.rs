//! Durable stores over one database: SQLite in a data directory, SQLite in memory, or Postgres; and the JSONL journal.
//!
//! [`Database::open`] gives the handle, the stores are views of it. Reads go to a pool; every write is one transaction, which
//! `tx` runs: on Postgres by itself, on SQLite grouped with the others that wait at the moment.

mod api_keys;
mod assistants;
mod beside;
mod checkpoints;
mod clock;
mod connect;
mod crons;
mod disk;
mod entity;
mod error;
mod feedback;
mod files;
mod items;
mod lock;
mod memories;
mod migration;
mod nodes;
mod operations;
mod place;
mod probe;
mod readiness;
mod requests;
mod reserve;
mod run_events;
mod runs;
mod script;
mod space;
mod streams;
mod threads;
mod tx;
mod upkeep;
mod usage;
mod webhooks;
mod writer;

pub use api_keys::SqlApiKeyStore;
pub use assistants::SqlAssistantStore;
pub use checkpoints::SqlCheckpointer;
pub use clock::PostgresClock;
pub use connect::{Database, DatabaseConfig, OpenError, PostgresConfig};
pub use crons::SqlCronStore;
pub use feedback::SqlFeedbackStore;
pub use items::SqlItemStore;
pub use memories::SqlMemoryStore;
pub use nodes::SqlNodeStore;
pub use operations::SqlOperationsStore;
pub use place::PlaceLimits;
pub use probe::{Probe, Schema};
pub use readiness::{DatabaseReadiness, FolderReadiness};
pub use requests::SqlRequestStore;
pub use run_events::{JsonlRunEventStore, SqlRunEventStore};
pub use runs::{SplitCommitStore, SqlRunStore};
pub use streams::SqlStreamLog;
pub use threads::SqlThreadStore;
pub use upkeep::SqlUpkeepStore;
pub use usage::SqlUsageStore;
pub use webhooks::SqlWebhookOutbox;
