//! `database`: storage of threads, runs and checkpoints.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

use super::check::Checker;
use super::open_keys::optional_secret;

/// Default of `sqlite_dir`, inside the runtime home.
pub const DEFAULT_SQLITE_DIR: &str = ".deer-flow/data";

/// Maximum disk reserve: one tebibyte, in mebibytes.
const MAX_RESERVE_MB: u64 = 1 << 20;

/// Store of all durable data.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DatabaseConfig {
    /// Kind of store.
    pub backend: DatabaseBackend,
    /// Has no effect: checkpoints store changes.
    pub checkpoint_channel_mode: CheckpointChannelMode,
    /// Has no effect: checkpoints store changes.
    pub checkpoint_delta: CheckpointDeltaConfig,
    /// Accepted for compatibility with older configurations.
    pub checkpoint_graph_cache: CheckpointGraphCacheConfig,
    /// Has no effect: checkpoints are not cached.
    pub checkpoint_cache: CheckpointCacheConfig,
    /// Folder of the SQLite file.
    pub sqlite_dir: PathBuf,
    /// Address of the Postgres server; contains a password.
    #[serde(deserialize_with = "optional_secret")]
    pub postgres_url: Option<SecretString>,
    /// Has no effect: `log_level: debug` logs the statements.
    pub echo_sql: bool,
    /// Size of the connection pool.
    pub pool_size: u32,
    /// Has no effect: a connection is tested before it is used.
    pub pool_recycle: u64,
    /// Has no effect: the timeouts of the database are built in.
    pub command_timeout: Option<f64>,
    /// Postgres schema; empty for the server's default.
    pub postgres_schema: String,
    /// Reserved disk space next to the SQLite file, in mebibytes. It allows deletes and the end of
    /// runs on a full disk; 0 for none.
    pub disk_reserve_mb: u64,
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        Self {
            backend: DatabaseBackend::Sqlite,
            checkpoint_channel_mode: CheckpointChannelMode::Full,
            checkpoint_delta: CheckpointDeltaConfig::default(),
            checkpoint_graph_cache: CheckpointGraphCacheConfig::default(),
            checkpoint_cache: CheckpointCacheConfig::default(),
            sqlite_dir: PathBuf::from(DEFAULT_SQLITE_DIR),
            postgres_url: None,
            echo_sql: false,
            pool_size: 5,
            pool_recycle: 300,
            command_timeout: Some(30.0),
            postgres_schema: String::new(),
            disk_reserve_mb: 32,
        }
    }
}

impl DatabaseConfig {
    /// Returns [`DatabaseConfig::disk_reserve_mb`] in bytes.
    pub fn disk_reserve_bytes(&self) -> u64 {
        self.disk_reserve_mb << 20
    }

    pub(super) fn check(&self, check: &mut Checker) {
        check.within("pool_size", self.pool_size, 1..);
        check.within("pool_recycle", self.pool_recycle, 1..);
        check.within("disk_reserve_mb", self.disk_reserve_mb, 0..=MAX_RESERVE_MB);
        if let Some(seconds) = self.command_timeout {
            check.positive("command_timeout", seconds);
        }
        if self.backend == DatabaseBackend::Postgres && self.postgres_url.is_none() {
            check.refuse(
                "postgres_url",
                "empty",
                "an address, since `backend` is postgres",
            );
        }
        check.under("checkpoint_delta", |check| {
            check.within(
                "snapshot_frequency",
                self.checkpoint_delta.snapshot_frequency,
                1..,
            );
        });
        check.under("checkpoint_graph_cache", |check| {
            check.within(
                "accessor_graph_max",
                self.checkpoint_graph_cache.accessor_graph_max,
                1..,
            );
        });
    }
}

/// Kind of store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DatabaseBackend {
    /// In memory; data is lost when the process ends.
    Memory,
    /// SQLite: one file, no server.
    #[default]
    Sqlite,
    /// Postgres server.
    Postgres,
}

/// Storage format of checkpoint channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CheckpointChannelMode {
    /// Each checkpoint contains all channels.
    #[default]
    Full,
    /// Checkpoints contain changes, with periodic snapshots.
    Delta,
}

/// Settings of delta checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CheckpointDeltaConfig {
    /// Number of checkpoints between two snapshots.
    pub snapshot_frequency: u64,
}

impl Default for CheckpointDeltaConfig {
    fn default() -> Self {
        Self {
            snapshot_frequency: 10,
        }
    }
}

/// Accepted for compatibility with older configurations; has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CheckpointGraphCacheConfig {
    /// Maximum number of cached graphs.
    pub accessor_graph_max: u64,
}

impl Default for CheckpointGraphCacheConfig {
    fn default() -> Self {
        Self {
            accessor_graph_max: 64,
        }
    }
}

/// Read cache of checkpoints.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CheckpointCacheConfig {
    /// Storage of the cache.
    #[serde(rename = "type")]
    pub kind: CheckpointCacheKind,
    /// Maximum number of cached checkpoints; 0 disables the cache.
    pub max_entries: u64,
    /// Redis address, for `type: redis`.
    #[serde(deserialize_with = "optional_secret")]
    pub redis_url: Option<SecretString>,
    /// Lifetime of an entry in Redis, in seconds.
    pub ttl_seconds: u64,
    /// Prefix of the Redis keys.
    pub key_prefix: String,
}

impl Default for CheckpointCacheConfig {
    fn default() -> Self {
        Self {
            kind: CheckpointCacheKind::Memory,
            max_entries: 128,
            redis_url: None,
            ttl_seconds: 86_400,
            key_prefix: String::new(),
        }
    }
}

/// Storage of cached checkpoints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CheckpointCacheKind {
    /// Memory of this process.
    #[default]
    Memory,
    /// Redis.
    Redis,
}
