//! Opens the database: its directory, lock, connections and schema.

use std::path::Path;
use std::sync::Arc;

use deerflow_core::tasks::Tasks;
use deerflow_runtime::runs::store::{StoreError, StoreLockStatus};
use futures_util::FutureExt;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbErr, EntityTrait, RuntimeErr, Select,
    SqlxPostgresConnector, SqlxSqliteConnector,
};
use sqlx::sqlite::{SqliteAutoVacuum, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};

use crate::db::config::{DatabaseConfig, OpenError, PostgresConfig};
use crate::db::disk_watch::DiskWatch;
use crate::db::error::DbFailure;
use crate::db::free_pages;
use crate::db::migration::migrate;
use crate::db::migration::progress::{OnProgress, ProgressFile};
use crate::db::open_writer::{WriterOpenError, open_writer, read_schema};
use crate::db::pool::{
    ACQUIRE_TIMEOUT, ENABLE_SYNCHRONOUS_COMMIT, pool_with_idle_check, postgres_options,
    sqlite_options, sqlite_pool, writer_pool,
};
use crate::db::prepared::PreparedWriter;
use crate::db::prepared_readers::PreparedReaders;
use crate::db::quotas::Quotas;
use crate::db::session_lock::{ExclusiveSession, SessionLockTimeouts};
use crate::db::write_queue::{Reconnect, WriteQueue};
use crate::db::writes::Writes;
use crate::files::data_lock::DataLock;
use crate::files::database_files::{DATABASE_FILE, create_private};
use crate::files::interrupted_restore;
use crate::files::reserve::Reserve;

const SQLITE_READERS: u32 = 8;

/// An open database. Clones share it; each store has one.
#[derive(Debug, Clone)]
pub struct Database {
    reads: DatabaseConnection,
    /// `None` unless the database is a file of SQLite.
    prepared_readers: Option<Arc<PreparedReaders>>,
    writes: Writes,
    /// `true` if no other process can use the same database and schema.
    exclusive: bool,
    _lock: Option<Arc<DataLock>>,
    /// The connection that holds the session lock in Postgres.
    lock_session: Option<ExclusiveSession>,
    quotas: Quotas,
}

impl Database {
    /// Opens the database and migrates its schema. The writer runs in `tasks`, which must be shut
    /// down after every caller that writes.
    pub async fn open(config: &DatabaseConfig, tasks: &Tasks) -> Result<Self, OpenError> {
        Self::open_with_reserve(config, 0, tasks, &|_| ()).await
    }

    /// Opens the database like [`Database::open`], and reserves `reserve` bytes of disk space for a
    /// SQLite file. When the disk is full, the reserve is released for deletes, ends of runs and
    /// checkpoints of the WAL, while creations are refused. `on_migration` receives each step of the
    /// migration of an existing schema before it runs.
    pub async fn open_with_reserve(
        config: &DatabaseConfig,
        reserve: u64,
        tasks: &Tasks,
        on_migration: OnProgress<'_>,
    ) -> Result<Self, OpenError> {
        match config {
            DatabaseConfig::Memory => Self::open_memory(tasks).await,
            DatabaseConfig::Sqlite(directory) => {
                Self::open_sqlite(directory, reserve, tasks, on_migration).await
            }
            DatabaseConfig::Postgres(postgres) => {
                let limits = SessionLockTimeouts::default();
                Self::open_postgres_in(postgres, limits, tasks, on_migration).await
            }
        }
    }

    /// Creates a database over a connection, without exclusive use.
    pub(crate) fn from_connection(connection: DatabaseConnection) -> Self {
        Self {
            reads: connection.clone(),
            prepared_readers: None,
            writes: Writes::direct(connection),
            exclusive: false,
            _lock: None,
            lock_session: None,
            quotas: Quotas::default(),
        }
    }

    /// Checks that the database answers, with a read that touches no table.
    pub async fn ping(&self) -> Result<(), StoreError> {
        crate::db::error::read(self.reads.ping().await)
    }

    /// Returns `true` if no other process can use the same database and schema.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Returns the connection for reads.
    pub(crate) fn reads(&self) -> &DatabaseConnection {
        &self.reads
    }

    /// Reads one row by its key with a prepared statement, or with `select` if the database has
    /// none or the statement failed.
    pub(crate) async fn read_one<E: EntityTrait>(
        &self,
        prepared: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<Option<E::Model>>,
        select: impl FnOnce() -> Select<E>,
    ) -> Result<Option<E::Model>, DbErr> {
        match self.read_prepared(prepared) {
            Some(row) => Ok(row),
            None => select().one(&self.reads).await,
        }
    }

    /// Reads with a prepared statement. Returns `None` if the database has none or the statement
    /// failed.
    pub(crate) fn read_prepared<T>(
        &self,
        prepared: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Option<T> {
        let read = self.prepared_readers.as_ref()?.read(prepared);
        read.inspect_err(|error| tracing::debug!(%error, "a prepared read failed"))
            .ok()
    }

    /// Returns the quotas of users, which the stores over this database check.
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Returns the connection for writes.
    pub(crate) fn writes(&self) -> &Writes {
        &self.writes
    }

    /// Returns the connection for reads of leases, which does not wait for other requests.
    pub(crate) fn lease_reads(&self) -> &DatabaseConnection {
        self.lock_session
            .as_ref()
            .map_or(&self.reads, ExclusiveSession::reads)
    }

    /// Returns the connection for writes of leases. It does not wait for other requests, except on
    /// SQLite for the transaction in progress.
    pub(crate) fn lease_writes(&self) -> Writes {
        match &self.lock_session {
            Some(lock_session) => lock_session.writes().clone(),
            None => self.writes.urgent(),
        }
    }

    /// Checks that the lock still excludes other processes. The lock on a data directory is only
    /// released when the process ends.
    pub(crate) async fn hold(&self) -> Result<StoreLockStatus, StoreError> {
        match &self.lock_session {
            Some(lock_session) => lock_session.hold().await,
            None => Ok(StoreLockStatus::Kept),
        }
    }

    async fn open_memory(tasks: &Tasks) -> Result<Self, OpenError> {
        // All data is in this one connection, so it must never be closed.
        let pool = sqlite_pool(1)
            .idle_timeout(None)
            .connect_with(sqlite_options().in_memory(true))
            .await
            .map_err(connection_failed)?;
        let connection = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
        migrate(&connection, &|_| ())
            .await
            .map_err(database_refused)?;
        let reconnect: Reconnect = Box::new(|same| std::future::ready(Ok(same)).boxed());
        let queue = WriteQueue::start(connection.clone(), reconnect, None, None, (), tasks)
            .map_err(no_thread)?;
        Ok(Self {
            reads: connection,
            prepared_readers: None,
            writes: Writes::queued(queue),
            exclusive: true,
            _lock: None,
            lock_session: None,
            quotas: Quotas::default(),
        })
    }

    async fn open_sqlite(
        directory: &Path,
        reserve: u64,
        tasks: &Tasks,
        on_migration: OnProgress<'_>,
    ) -> Result<Self, OpenError> {
        let directory_unusable = |error: std::io::Error| OpenError::Directory {
            directory: directory.to_owned(),
            reason: error.to_string(),
        };
        std::fs::create_dir_all(directory).map_err(directory_unusable)?;
        let lock = DataLock::acquire(directory)
            .map_err(directory_unusable)?
            .ok_or_else(|| OpenError::InUse {
                directory: directory.to_owned(),
            })?;
        let lock = Arc::new(lock);
        interrupted_restore::repair(directory).map_err(directory_unusable)?;
        let file = directory.join(DATABASE_FILE);
        create_private(&file).map_err(directory_unusable)?;
        let damaged = |failure: DbFailure| match failure {
            DbFailure::Failed(reason) | DbFailure::Disk(reason) => OpenError::Damaged {
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
            // Affects new files only: `db::free_pages` returns their unused pages.
            .auto_vacuum(SqliteAutoVacuum::Incremental)
            // The WAL shrinks to this size after a burst.
            .pragma("journal_size_limit", "16777216")
            // Pages that several commits changed are written back only once.
            .pragma("wal_autocheckpoint", "4000")
            // Temporary data of savepoints and sorts needs no file.
            .pragma("temp_store", "MEMORY");
        let mut reserve = Reserve::open(directory, reserve).map_err(directory_unusable)?;
        let progress_file = ProgressFile::new(directory);
        let on_progress = |progress: &_| {
            progress_file.write(progress);
            on_migration(progress);
        };
        let writer = match open_writer(&options, &file, &on_progress).await {
            // A process that was killed on a full disk may leave a WAL that cannot be written back
            // without free space.
            Err(WriterOpenError::Reading(failure) | WriterOpenError::Migrating(failure))
                if failure.may_lack_space() && reserve.release().map_err(directory_unusable)? =>
            {
                open_writer(&options, &file, &on_progress).await
            }
            opened => opened,
        };
        drop(progress_file);
        let writer = writer.map_err(|error| match error {
            WriterOpenError::Reading(failure) => damaged(failure),
            WriterOpenError::Migrating(failure) => {
                OpenError::Database(format!("{}: {}", file.display(), StoreError::from(failure)))
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
            .map_err(|error| damaged(DbFailure::from(&error)))?;
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
                read_schema(&writer).await?;
                Ok(writer)
            }
            .boxed()
        });
        let disk = DiskWatch::start(directory, &lock, reserve).map_err(directory_unusable)?;
        let prepared = Some(PreparedWriter::new(&file));
        let held = Arc::clone(&lock);
        let queue = WriteQueue::start(writer, reconnect, prepared, Some(disk), held, tasks)
            .map_err(no_thread)?;
        let reads = SqlxSqliteConnector::from_sqlx_sqlite_pool(readers);
        let writes = Writes::queued(queue);
        free_pages::start(reads.clone(), writes.clone(), tasks);
        Ok(Self {
            reads,
            prepared_readers: Some(Arc::new(PreparedReaders::new(&file))),
            writes,
            exclusive: true,
            _lock: Some(lock),
            lock_session: None,
            quotas: Quotas::default(),
        })
    }

    /// Opens a Postgres server with these timeouts of the session lock.
    pub async fn open_postgres(
        config: &PostgresConfig,
        limits: SessionLockTimeouts,
    ) -> Result<Self, OpenError> {
        Self::open_postgres_in(config, limits, &Tasks::new(), &|_| ()).await
    }

    /// Opens a Postgres server. The connection for leases runs in the control runtime of `tasks`,
    /// if there is one.
    async fn open_postgres_in(
        config: &PostgresConfig,
        limits: SessionLockTimeouts,
        tasks: &Tasks,
        on_migration: OnProgress<'_>,
    ) -> Result<Self, OpenError> {
        let options = postgres_options(config)?;
        // A pool retries a refused connection; at startup the error must be reported at once.
        let probe = tokio::time::timeout(ACQUIRE_TIMEOUT, options.connect())
            .await
            .unwrap_or(Err(sqlx::Error::PoolTimedOut));
        probe
            .map_err(connection_failed)?
            .close()
            .await
            .map_err(connection_failed)?;
        let lock_session = ExclusiveSession::new(
            options.clone(),
            config.schema.as_deref(),
            config.exclusive,
            limits,
        );
        if tasks
            .within_control(lock_session.hold())
            .await
            .map_err(|error| OpenError::Database(error.to_string()))?
            == StoreLockStatus::Lost
        {
            return Err(if config.exclusive {
                OpenError::InUseByOthers
            } else {
                OpenError::InUseByOne
            });
        }
        let pool = pool_with_idle_check()
            .max_connections(config.max_connections.max(1))
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    sqlx::query(ENABLE_SYNCHRONOUS_COMMIT)
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
                .map_err(database_refused)?;
        }
        migrate(&pool, on_migration)
            .await
            .map_err(database_refused)?;
        Ok(Self {
            reads: pool.clone(),
            prepared_readers: None,
            writes: Writes::direct(pool),
            exclusive: config.exclusive,
            _lock: None,
            lock_session: Some(lock_session),
            quotas: Quotas::default(),
        })
    }
}

pub(crate) fn connection_failed(error: sqlx::Error) -> OpenError {
    OpenError::Database(StoreError::from(DbFailure::from(&error)).to_string())
}

pub(crate) fn database_refused(error: DbErr) -> OpenError {
    OpenError::Database(StoreError::from(DbFailure::from(error)).to_string())
}

fn no_thread(error: std::io::Error) -> OpenError {
    OpenError::Database(format!("the thread of the writer did not start: {error}"))
}
