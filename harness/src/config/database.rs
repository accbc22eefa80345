//! `database`: where threads, runs and checkpoints are kept.

use std::path::PathBuf;

use secrecy::SecretString;
use serde::Deserialize;

use super::check::Checker;
use super::open_keys::optional_secret;

/// `sqlite_dir` unless configured: inside the runtime home.
pub const DEFAULT_SQLITE_DIR: &str = ".deer-flow/data";

/// A tebibyte.
const LARGEST_RESERVE_MB: u64 = 1 << 20;

/// The store of everything durable.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DatabaseConfig {
    /// The kind of store.
    pub backend: DatabaseBackend,
    /// How checkpoints keep their channels.
    pub checkpoint_channel_mode: CheckpointChannelMode,
    /// Settings of `checkpoint_channel_mode: delta`.
    pub checkpoint_delta: CheckpointDeltaConfig,
    /// Accepted for older configurations.
    pub checkpoint_graph_cache: CheckpointGraphCacheConfig,
    /// Read cache of checkpoints.
    pub checkpoint_cache: CheckpointCacheConfig,
    /// Directory of the SQLite file.
    pub sqlite_dir: PathBuf,
    /// Address of the Postgres server; holds a password.
    #[serde(deserialize_with = "optional_secret")]
    pub postgres_url: Option<SecretString>,
    /// Log every statement.
    pub echo_sql: bool,
    /// Connections kept open.
    pub pool_size: u32,
    /// Seconds after which a connection is replaced.
    pub pool_recycle: u64,
    /// Seconds a statement may take; null for no limit.
    pub command_timeout: Option<f64>,
    /// Postgres schema; empty for the server's default.
    pub postgres_schema: String,
    /// Mebibytes of disk space that are kept beside the SQLite file for deletes and ends of runs on a full disk; 0 for none.
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
    /// [`DatabaseConfig::disk_reserve_mb`] in bytes.
    pub fn disk_reserve_bytes(&self) -> u64 {
        self.disk_reserve_mb << 20
    }

    pub(super) fn check(&self, check: &mut Checker) {
        check.within("pool_size", self.pool_size, 1..);
        check.within("pool_recycle", self.pool_recycle, 1..);
        check.within(
            "disk_reserve_mb",
            self.disk_reserve_mb,
            0..=LARGEST_RESERVE_MB,
        );
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

/// The kind of store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DatabaseBackend {
    /// Nothing outlives the process.
    Memory,
    /// One file, no server.
    #[default]
    Sqlite,
    /// A Postgres server.
    Postgres,
}

/// How checkpoints keep their channels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CheckpointChannelMode {
    /// Each checkpoint holds everything.
    #[default]
    Full,
    /// Checkpoints hold what changed, with a snapshot now and then.
    Delta,
}

/// Settings of delta checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CheckpointDeltaConfig {
    /// Checkpoints between two snapshots.
    pub snapshot_frequency: u64,
}

impl Default for CheckpointDeltaConfig {
    fn default() -> Self {
        Self {
            snapshot_frequency: 10,
        }
    }
}

/// Accepted for older configurations; nothing reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CheckpointGraphCacheConfig {
    /// How many graphs are kept.
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
    /// Where the cache lives.
    #[serde(rename = "type")]
    pub kind: CheckpointCacheKind,
    /// How many checkpoints are kept; 0 turns the cache off.
    pub max_entries: u64,
    /// Redis address, when cached there.
    #[serde(deserialize_with = "optional_secret")]
    pub redis_url: Option<SecretString>,
    /// Seconds an entry lives in Redis.
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

/// Where checkpoints are cached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CheckpointCacheKind {
    /// In this process.
    #[default]
    Memory,
    /// In Redis.
    Redis,
}
