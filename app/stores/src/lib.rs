//! Durable stores over one database: SQLite in a data directory, SQLite in memory, or Postgres; and
//! the JSONL journal.
//!
//! [`Database::open`] returns the handle; the stores are created over it. Reads use a pool. Every
//! write is one transaction, run by `db::writes`: on Postgres by itself, on SQLite grouped with the
//! other queued writes.

mod db;
mod files;
mod foreign_users;
mod journal;
mod sql;
mod upkeep;

pub use db::clock::PostgresClock;
pub use db::config::{DatabaseConfig, OpenError, PostgresConfig};
pub use db::connect::Database;
pub use db::migration::progress::MigrationProgress;
pub use db::probe::{Probe, Schema};
pub use db::quotas::Quotas;
pub use db::readiness::{DatabaseReadiness, FolderReadiness};
pub use db::session_lock::SessionLockTimeouts;
pub use foreign_users::{ForeignUsersError, read_foreign_users};
pub use journal::jsonl::JsonlRunEventStore;
pub use sql::accounts::SqlAccountStore;
pub use sql::api_keys::SqlApiKeyStore;
pub use sql::assistants::SqlAssistantStore;
pub use sql::channels::SqlChannelStore;
pub use sql::checkpoints::SqlCheckpointer;
pub use sql::crons::SqlCronStore;
pub use sql::feedback::SqlFeedbackStore;
pub use sql::flows::SqlFlowStore;
pub use sql::items::SqlItemStore;
pub use sql::maintenance::SqlMaintenanceStore;
pub use sql::memories::SqlMemoryStore;
pub use sql::nodes::SqlNodeStore;
pub use sql::operations::SqlOperationsStore;
pub use sql::quota_usage::SqlQuotaUsage;
pub use sql::requests::SqlRequestStore;
pub use sql::run_events::SqlRunEventStore;
pub use sql::runs::{SplitCommitStore, SqlRunStore};
pub use sql::scheduled_tasks::SqlTaskStore;
pub use sql::streams::SqlStreamLog;
pub use sql::thread_log::SqlThreadLog;
pub use sql::threads::SqlThreadStore;
pub use sql::usage::SqlUsageStore;
pub use sql::user_rows::SqlUserRows;
pub use sql::webhooks::SqlWebhookOutbox;
pub use upkeep::{BackedUp, Integrity, Restored, UpkeepError, Vacuumed};
