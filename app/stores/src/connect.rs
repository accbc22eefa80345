//! Opening the database: its directory, its lock, its connections, its schema.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use harness::runtime::runs::store::{Hold, StoreError};
use harness::runtime::tasks::Tasks;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbErr, RuntimeErr, SqlxPostgresConnector,
    SqlxSqliteConnector,
};
use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};

use crate::disk::DiskWatch;
use crate::error::Fault;
use crate::lock::{DataLock, LOCK_FILE};
use crate::migration::migrate;
use crate::place::{Keeper, PlaceLimits};
use crate::reserve::Reserve;
use crate::tx::Writes;
use crate::writer::{Reconnect, WriteQueue};

/// The database file in the data directory.
pub(crate) const FILE: &str = "deerflow.db";
/// How long SQLite waits for a lock that another program holds.
const BUSY_LIMIT: Duration = Duration::from_secs(10);
/// How long a caller waits for a connection.
pub(crate) const ACQUIRE_LIMIT: Duration = Duration::from_secs(10);
/// The longest a statement may take on Postgres, and wait for a row there, in milliseconds.
const STATEMENT_LIMIT_MS: &str = "20000";
/// A Postgres connection that was idle for longer is asked whether it is still of use. A server that was stopped is hardly back sooner; a
/// session that was ended while its server went on can be met within it.
const ASK_AFTER: Duration = Duration::from_millis(100);
const SQLITE_READERS: u32 = 8;
/// Files up to this size are checked page by page at the start; a longer check would hold the start up.
pub(crate) const CHECK_LIMIT_BYTES: u64 = 64 << 20;

/// Which database.
#[derive(Debug, Clone)]
pub enum DatabaseConfig {
    /// SQLite in memory: everything is gone with the process.
    Memory,
    /// One SQLite file in this directory, which is made when missing and belongs to one process.
    Sqlite(PathBuf),
    /// A Postgres server.
    Postgres(PostgresConfig),
}

/// A Postgres server and the place in it.
#[derive(Debug, Clone)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database`.
    pub url: SecretString,
    /// The schema, made when missing; the server's default search path when absent.
    pub schema: Option<String>,
    /// Most connections at once.
    pub max_connections: u32,
    /// Whether another process of ours must not use the same place: a session lock is held as long as the database is open.
    pub exclusive: bool,
}

/// Why a database could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The data directory cannot be made or written.
    #[error("the data directory {directory} cannot be used: {reason}")]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the operating system says.
        reason: String,
    },
    /// Another process uses the data directory.
    #[error(
        "another process uses {directory} (it holds {LOCK_FILE} there); stop it or choose another directory"
    )]
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// Another process uses the same place in the Postgres server, and this one would need it for itself.
    #[error(
        "another process uses this postgres database and schema, and with stream_bridge.type \"memory\" a process needs it for itself: \
         stop the other one, or set stream_bridge.type to \"redis\" on every node"
    )]
    InUseByOthers,
    /// A process has the place in the Postgres server for itself.
    #[error(
        "a process with stream_bridge.type \"memory\" has this postgres database and schema for itself: stop it, or set \
         stream_bridge.type to \"redis\" there, too"
    )]
    InUseByOne,
    /// The file is no database, or a damaged one.
    #[error("the database file {file} is damaged: {reason}")]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The connection string or schema name is not valid; it is not repeated here because it may hold a password.
    #[error("the postgres settings are not valid: {0}")]
    Settings(&'static str),
    /// The database does not answer, or refuses.
    #[error("the database cannot be opened: {0}")]
    Database(String),
}

/// An open database. Clones share it; the stores hold one each.
#[derive(Debug, Clone)]
pub struct Database {
    reads: DatabaseConnection,
    writes: Writes,
    /// Whether no other process can use the same place.
    alone: bool,
    _lock: Option<Arc<DataLock>>,
    /// What keeps a place in Postgres.
    keeper: Option<Keeper>,
}

impl Database {
    /// Opens it and brings its schema up to date. The writer runs in `tasks`, which must be shut down after everything that
    /// writes.
    pub async fn open(config: &DatabaseConfig, tasks: &Tasks) -> Result<Self, OpenError> {
        Self::open_with_reserve(config, 0, tasks).await
    }

    /// What [`Database::open`] does, with `reserve` bytes of disk space kept beside a SQLite file: when the disk is full, they let deletes,
    /// ends of runs and checkpoints of the log through, while everything new is refused.
    pub async fn open_with_reserve(
        config: &DatabaseConfig,
        reserve: u64,
        tasks: &Tasks,
    ) -> Result<Self, OpenError> {
        match config {
            DatabaseConfig::Memory => Self::open_memory(tasks).await,
            DatabaseConfig::Sqlite(directory) => Self::open_sqlite(directory, reserve, tasks).await,
            DatabaseConfig::Postgres(postgres) => {
                Self::open_postgres_beside(postgres, PlaceLimits::default(), tasks).await
            }
        }
    }

    /// One over a connection that others may share the place with.
    pub(crate) fn over(connection: DatabaseConnection) -> Self {
        Self {
            reads: connection.clone(),
            writes: Writes::direct(connection),
            alone: false,
            _lock: None,
            keeper: None,
        }
    }

    /// Whether the database answers: a read that touches no table.
    pub async fn ping(&self) -> Result<(), StoreError> {
        crate::error::read(self.reads.ping().await)
    }

    /// Whether no other process can use the same place.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone
    }

    /// Where reads go.
    pub(crate) fn reads(&self) -> &DatabaseConnection {
        &self.reads
    }

    /// Where writes go.
    pub(crate) fn writes(&self) -> &Writes {
        &self.writes
    }

    /// Where reads of leases go: they wait for no request.
    pub(crate) fn lease_reads(&self) -> &DatabaseConnection {
        self.keeper.as_ref().map_or(&self.reads, Keeper::reads)
    }

    /// Where leases are written: they wait for no request, but on SQLite, where none lapses.
    pub(crate) fn lease_writes(&self) -> &Writes {
        self.keeper.as_ref().map_or(&self.writes, Keeper::writes)
    }

    /// Whether those are still kept out who must not use the same place. A file's lock goes with the process only.
    pub(crate) async fn hold(&self) -> Result<Hold, StoreError> {
        match &self.keeper {
            Some(keeper) => keeper.hold().await,
            None => Ok(Hold::Kept),
        }
    }

    async fn open_memory(tasks: &Tasks) -> Result<Self, OpenError> {
        // All data lives in the one connection, so it must never be closed.
        let pool = sqlite_pool(1)
            .idle_timeout(None)
            .connect_with(sqlite_options().in_memory(true))
            .await
            .map_err(unreachable)?;
        let connection = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
        migrate(&connection).await.map_err(refused)?;
        let reconnect: Reconnect = Box::new(|same| std::future::ready(Ok(same)).boxed());
        let queue = WriteQueue::start(connection.clone(), reconnect, None, (), tasks);
        Ok(Self {
            reads: connection,
            writes: Writes::queued(queue),
            alone: true,
            _lock: None,
            keeper: None,
        })
    }

    async fn open_sqlite(directory: &Path, reserve: u64, tasks: &Tasks) -> Result<Self, OpenError> {
        let unusable = |error: std::io::Error| OpenError::Directory {
            directory: directory.to_owned(),
            reason: error.to_string(),
        };
        std::fs::create_dir_all(directory).map_err(unusable)?;
        let lock = DataLock::take(directory)
            .map_err(unusable)?
            .ok_or_else(|| OpenError::InUse {
                directory: directory.to_owned(),
            })?;
        let lock = Arc::new(lock);
        let file = directory.join(FILE);
        let damaged = |fault: Fault| match fault {
            Fault::Failed(reason) | Fault::Disk(reason) => OpenError::Damaged {
                file: file.clone(),
                reason,
            },
            other => {
                OpenError::Database(format!("{}: {}", file.display(), StoreError::from(other)))
            }
        };
        let options = sqlite_options()
            .filename(&file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            // After a burst the log shrinks back to this size.
            .pragma("journal_size_limit", "16777216")
            // Pages that many runs change are written back once for many commits.
            .pragma("wal_autocheckpoint", "4000")
            // What a savepoint or a sort needs for a moment is no file.
            .pragma("temp_store", "MEMORY");
        let mut reserve = Reserve::open(directory, reserve).map_err(unusable)?;
        let writer = match open_writer(&options, &file).await {
            // A process that was killed on a full disk may have left a log that cannot be written back without some room.
            Err(Unopened::Reading(fault) | Unopened::Migrating(fault))
                if fault.may_lack_space() && reserve.release().map_err(unusable)? =>
            {
                open_writer(&options, &file).await
            }
            opened => opened,
        };
        let writer = writer.map_err(|error| match error {
            Unopened::Reading(fault) => damaged(fault),
            Unopened::Migrating(fault) => {
                OpenError::Database(format!("{}: {}", file.display(), StoreError::from(fault)))
            }
        })?;
        let readers = sqlite_pool(SQLITE_READERS)
            .connect_with(
                options
                    .clone()
                    .create_if_missing(false)
                    .pragma("query_only", "1"),
            )
            .await
            .map_err(|error| damaged(Fault::from(&error)))?;
        let reconnect: Reconnect = Box::new(move |broken| {
            let options = options.clone();
            async move {
                broken.close().await?;
                let pool = writer_pool()
                    .connect_with(options.create_if_missing(false))
                    .await;
                let pool =
                    pool.map_err(|error| DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))))?;
                let writer = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
                touch(&writer).await?;
                Ok(writer)
            }
            .boxed()
        });
        let disk = DiskWatch::start(directory, &lock, reserve).map_err(unusable)?;
        let queue = WriteQueue::start(writer, reconnect, Some(disk), Arc::clone(&lock), tasks);
        Ok(Self {
            reads: SqlxSqliteConnector::from_sqlx_sqlite_pool(readers),
            writes: Writes::queued(queue),
            alone: true,
            _lock: Some(lock),
            keeper: None,
        })
    }

    /// What [`Database::open`] does for a Postgres server, with other limits than the usual ones.
    pub async fn open_postgres(
        config: &PostgresConfig,
        limits: PlaceLimits,
    ) -> Result<Self, OpenError> {
        Self::open_postgres_beside(config, limits, &Tasks::new()).await
    }

    /// Opens a Postgres server. The connection for leases belongs to the control runtime of `tasks`, where there is one.
    async fn open_postgres_beside(
        config: &PostgresConfig,
        limits: PlaceLimits,
        tasks: &Tasks,
    ) -> Result<Self, OpenError> {
        let options = postgres_options(config)?;
        // A pool tries a refused connection again and again; at the start the reason is wanted at once.
        let probe = tokio::time::timeout(ACQUIRE_LIMIT, options.connect())
            .await
            .unwrap_or(Err(sqlx::Error::PoolTimedOut));
        probe
            .map_err(unreachable)?
            .close()
            .await
            .map_err(unreachable)?;
        let keeper = Keeper::new(
            options.clone(),
            config.schema.as_deref(),
            config.exclusive,
            limits,
        );
        if tasks
            .within_control(keeper.hold())
            .await
            .map_err(|error| OpenError::Database(error.to_string()))?
            == Hold::Lost
        {
            return Err(if config.exclusive {
                OpenError::InUseByOthers
            } else {
                OpenError::InUseByOne
            });
        }
        let pool = asked_when_rested()
            .max_connections(config.max_connections.max(1))
            .acquire_timeout(ACQUIRE_LIMIT)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    sqlx::query(FLUSH_COMMITS)
                        .execute(connection)
                        .await
                        .map(drop)
                })
            })
            .connect_lazy_with(options);
        let pool = SqlxPostgresConnector::from_sqlx_postgres_pool(pool);
        if let Some(schema) = &config.schema {
            pool.execute_unprepared(&format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\""))
                .await
                .map_err(refused)?;
        }
        migrate(&pool).await.map_err(refused)?;
        Ok(Self {
            reads: pool.clone(),
            writes: Writes::direct(pool),
            alone: config.exclusive,
            _lock: None,
            keeper: Some(keeper),
        })
    }
}

/// A pool whose connections are asked whether they live, and whether their server still takes writes, before they are used again: after
/// a failover the former primary may answer on as a standby. Asking before every use would double the way to the server; a connection
/// used a moment ago is still good.
pub(crate) fn asked_when_rested() -> PgPoolOptions {
    PgPoolOptions::new()
        .test_before_acquire(false)
        .before_acquire(|connection, used| {
            Box::pin(async move {
                Ok(used.idle_for <= ASK_AFTER
                    || !sqlx::query_scalar::<_, bool>("SELECT pg_is_in_recovery()")
                        .fetch_one(connection)
                        .await?)
            })
        })
}

/// What is acknowledged is on disk, whatever the role or the database has as its default. Stricter settings stay.
const FLUSH_COMMITS: &str = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// The connection's settings, or what is wrong with them.
pub(crate) fn postgres_options(config: &PostgresConfig) -> Result<PgConnectOptions, OpenError> {
    let options: PgConnectOptions = config.url.expose_secret().parse().map_err(|_| {
        OpenError::Settings("the url must be postgres://user:password@host:port/database")
    })?;
    let mut options = options
        .disable_statement_logging()
        .application_name("deerflow")
        .options([
            ("statement_timeout", STATEMENT_LIMIT_MS),
            ("idle_in_transaction_session_timeout", STATEMENT_LIMIT_MS),
        ])
        // A plan that is to serve every value takes a filter that all threads pass for one that few do: half a second instead of
        // six milliseconds over 100,000 threads.
        .options([("plan_cache_mode", "force_custom_plan")])
        // What a page costs that is not the next one: the default is that of turning disks, and has a thread's messages collected
        // and sorted although its key holds them in order.
        .options([("random_page_cost", "1.1")]);
    if let Some(schema) = &config.schema {
        if schema.is_empty()
            || !schema
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return Err(OpenError::Settings(
                "a schema name has only letters, digits and underscores",
            ));
        }
        options = options.options([("search_path", schema.as_str())]);
    }
    Ok(options)
}

pub(crate) fn sqlite_options() -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .foreign_keys(true)
        .busy_timeout(BUSY_LIMIT)
        .statement_cache_capacity(256)
        .disable_statement_logging()
}

pub(crate) fn sqlite_pool(connections: u32) -> SqlitePoolOptions {
    // A file does not go away between two uses: no ping before each.
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_LIMIT)
        .max_lifetime(None)
        .test_before_acquire(false)
}

/// Why the writer's connection is not to be had.
enum Unopened {
    Reading(Fault),
    Migrating(Fault),
}

/// A connection for the writer over a sound file with the present schema.
async fn open_writer(
    options: &SqliteConnectOptions,
    file: &Path,
) -> Result<DatabaseConnection, Unopened> {
    let pool = writer_pool()
        .connect_with(options.clone())
        .await
        .map_err(|error| Unopened::Reading(Fault::from(&error)))?;
    let writer = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
    if std::fs::metadata(file).is_ok_and(|found| found.len() <= CHECK_LIMIT_BYTES) {
        check(&writer).await.map_err(Unopened::Reading)?;
    }
    migrate(&writer)
        .await
        .map_err(|error| Unopened::Migrating(error.into()))?;
    touch(&writer)
        .await
        .map_err(|error| Unopened::Reading(error.into()))?;
    Ok(writer)
}

/// The writer's connection stays open when nothing happens: with the last connection SQLite would remove the log, whose identity is
/// watched.
fn writer_pool() -> SqlitePoolOptions {
    sqlite_pool(1).idle_timeout(None)
}

/// Reads from the file, which opens the log beside it.
async fn touch(db: &DatabaseConnection) -> Result<(), DbErr> {
    db.execute_unprepared("SELECT COUNT(*) FROM sqlite_schema")
        .await
        .map(drop)
}

/// Reads every page once.
pub(crate) async fn check(db: &DatabaseConnection) -> Result<(), Fault> {
    let statement =
        sea_orm::Statement::from_string(db.get_database_backend(), "PRAGMA quick_check(1)");
    let row = db.query_one_raw(statement).await?;
    let verdict = row
        .map(|row| row.try_get_by_index::<String>(0))
        .transpose()?;
    match verdict.as_deref() {
        Some("ok") => Ok(()),
        other => Err(Fault::Failed(
            other.unwrap_or("it could not be checked").to_owned(),
        )),
    }
}

pub(crate) fn unreachable(error: sqlx::Error) -> OpenError {
    OpenError::Database(StoreError::from(Fault::from(&error)).to_string())
}

pub(crate) fn refused(error: DbErr) -> OpenError {
    OpenError::Database(StoreError::from(Fault::from(error)).to_string())
}
