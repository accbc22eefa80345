//! Returns the space of deleted rows in a SQLite file to the file system, in small writes between
//! those of the server.

use std::time::Duration;

use deerflow_core::tasks::{TaskKind, Tasks};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, Statement};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio_util::sync::CancellationToken;

use crate::db::tx::TxFuture;
use crate::db::writes::Writes;

/// Interval between checks of the number of free pages.
const INTERVAL: Duration = Duration::from_secs(30);
/// Pages that are freed in one write, and the pause after it: at most 2 MiB in some 10 ms.
const STEP_PAGES: u32 = 512;
const PAUSE: Duration = Duration::from_millis(20);
/// Free pages that stay for later rows: this number, or this fraction of the file.
const SPARE_PAGES: i64 = 256;
const SPARE_FRACTION: i64 = 16;

/// Value of `auto_vacuum` of files whose pages can be freed one by one.
const INCREMENTAL: i64 = 2;

/// Pages of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pages {
    free: i64,
    all: i64,
    /// `true` if free pages can be returned without a rewrite of the file.
    returns: bool,
}

impl Pages {
    /// Returns `true` if more pages are free than later rows need soon.
    fn has_excess(self) -> bool {
        self.free > SPARE_PAGES.max(self.all / SPARE_FRACTION)
    }
}

/// Frees pages in the background until `tasks` shuts down.
pub(crate) fn start(reads: DatabaseConnection, writes: Writes, tasks: &Tasks) {
    let stop = tasks.token().clone();
    tasks.spawn(TaskKind::Service, "free database pages", async move {
        let mut is_reported = false;
        let mut is_pending = false;
        while stop
            .run_until_cancelled(tokio::time::sleep(INTERVAL))
            .await
            .is_some()
        {
            match free_and_truncate(&reads, &writes, &stop, &mut is_pending).await {
                Ok(pages) if pages.has_excess() && !pages.returns && !is_reported => {
                    is_reported = true;
                    tracing::info!(
                        free_pages = pages.free,
                        "the database file has unused pages and was created by an earlier version: `deerflow db vacuum` returns them while the server is stopped"
                    );
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "cannot free pages of the database now"),
            }
        }
    });
}

/// Frees pages, and then shortens the files. `is_pending` is `true` while pages were freed and the
/// files were not shortened after it, which a later call does.
async fn free_and_truncate(
    reads: &DatabaseConnection,
    writes: &Writes,
    stop: &CancellationToken,
    is_pending: &mut bool,
) -> Result<Pages, StoreError> {
    let freed = free_excess(reads, writes, stop, is_pending).await;
    if *is_pending && !stop.is_cancelled() {
        *is_pending = !truncate(reads).await?;
    }
    freed
}

/// Frees pages until no more are free than later rows need. Returns the pages at the end, and sets
/// `has_freed` if it freed some.
async fn free_excess(
    reads: &DatabaseConnection,
    writes: &Writes,
    stop: &CancellationToken,
    has_freed: &mut bool,
) -> Result<Pages, StoreError> {
    loop {
        let pages = crate::db::error::read(pages_of(reads).await)?;
        if !pages.returns || !pages.has_excess() || stop.is_cancelled() {
            return Ok(pages);
        }
        writes.release((), free_step).await?;
        *has_freed = true;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Writes the WAL back, which shortens the database file by the freed pages, and empties the WAL.
/// Returns `false` if a reader or a writer prevented it.
async fn truncate(reads: &DatabaseConnection) -> Result<bool, StoreError> {
    crate::db::error::read(
        checkpoint(reads).await.map_err(|error| {
            DbErr::Conn(sea_orm::RuntimeErr::SqlxError(std::sync::Arc::new(error)))
        }),
    )
}

async fn checkpoint(reads: &DatabaseConnection) -> Result<bool, sqlx::Error> {
    // A connection of its own: the last checkpoint excludes writers and must not wait for readers
    // meanwhile, as a connection of the pool would.
    let options = reads.get_sqlite_connection_pool().connect_options();
    let mut connection = options.connect().await?;
    sqlx::query("PRAGMA busy_timeout = 0")
        .execute(&mut connection)
        .await?;
    // Writes most of the WAL back while others write, so that the other one takes a moment.
    let done = match checkpoint_in_mode(&mut connection, "PRAGMA wal_checkpoint(PASSIVE)").await {
        Ok(_) => checkpoint_in_mode(&mut connection, "PRAGMA wal_checkpoint(TRUNCATE)").await,
        Err(error) => Err(error),
    };
    connection.close().await?;
    done
}

/// Returns `true` if the checkpoint is complete.
async fn checkpoint_in_mode(
    connection: &mut SqliteConnection,
    statement: &'static str,
) -> Result<bool, sqlx::Error> {
    let (is_busy, _, _): (i64, i64, i64) = sqlx::query_as(statement).fetch_one(connection).await?;
    Ok(is_busy == 0)
}

async fn pages_of(reads: &DatabaseConnection) -> Result<Pages, DbErr> {
    let sql = "SELECT freelist_count, page_count, auto_vacuum \
        FROM pragma_freelist_count, pragma_page_count, pragma_auto_vacuum";
    let row = reads
        .query_one_raw(Statement::from_string(reads.get_database_backend(), sql))
        .await?
        .ok_or_else(|| DbErr::Custom("the database has no page count".to_owned()))?;
    Ok(Pages {
        free: row.try_get_by_index(0)?,
        all: row.try_get_by_index(1)?,
        returns: row.try_get_by_index::<i64>(2)? == INCREMENTAL,
    })
}

fn free_step<'a>(tx: &'a DatabaseTransaction, (): &'a ()) -> TxFuture<'a, ()> {
    Box::pin(async move {
        tx.execute_unprepared(&format!("PRAGMA incremental_vacuum({STEP_PAGES})"))
            .await?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use sea_orm::TransactionTrait;

    use super::*;
    use crate::db::config::DatabaseConfig;
    use crate::db::connect::Database;

    const FILL: &str = "CREATE TABLE filler (bytes BLOB); \
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) \
        INSERT INTO filler SELECT randomblob(2000) FROM n; \
        DELETE FROM filler";

    fn execute<'a>(tx: &'a DatabaseTransaction, sql: &'a &'static str) -> TxFuture<'a, ()> {
        Box::pin(async move {
            tx.execute_unprepared(sql).await?;
            Ok(())
        })
    }

    /// Opens a database that has many free pages.
    async fn filled(folder: &tempfile::TempDir, tasks: &Tasks) -> Database {
        let config = DatabaseConfig::Sqlite(folder.path().to_owned());
        let db = Database::open(&config, tasks).await.unwrap();
        db.writes().release(FILL, execute).await.unwrap();
        db
    }

    async fn free(db: &Database, is_pending: &mut bool) -> Pages {
        let stop = CancellationToken::new();
        free_and_truncate(db.reads(), db.writes(), &stop, is_pending)
            .await
            .unwrap()
    }

    /// Returns the bytes of the database file and of its WAL.
    fn lengths(folder: &tempfile::TempDir) -> (u64, u64) {
        let length = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len();
        (length("deerflow.db"), length("deerflow.db-wal"))
    }

    #[tokio::test]
    async fn pages_of_deleted_rows_leave_the_files() {
        let (folder, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
        let db = filled(&folder, &tasks).await;
        let before = pages_of(db.reads()).await.unwrap();
        assert!(before.returns && before.has_excess(), "{before:?}");
        let mut is_pending = false;
        let freed = free(&db, &mut is_pending).await;
        assert!(!freed.has_excess(), "{freed:?}");
        assert!(freed.all < before.all - 1_000, "{before:?} {freed:?}");
        assert!(!is_pending);
        assert_eq!(lengths(&folder), (freed.all.unsigned_abs() * 4096, 0));
    }

    #[tokio::test]
    async fn reader_delays_the_truncation_and_no_write() {
        let (folder, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
        let db = filled(&folder, &tasks).await;
        let reader = db.reads().begin().await.unwrap();
        let count = "SELECT count(*) FROM sqlite_schema";
        reader.execute_unprepared(count).await.unwrap();
        let (mut is_pending, start) = (false, std::time::Instant::now());
        free(&db, &mut is_pending).await;
        assert!(is_pending && lengths(&folder).1 > 0);
        let drop_table: &'static str = "DROP TABLE filler";
        db.writes().release(drop_table, execute).await.unwrap();
        // A wait for the reader would take as long as the timeout of a connection, 10 s.
        assert!(start.elapsed() < Duration::from_secs(8));
        reader.rollback().await.unwrap();
        free(&db, &mut is_pending).await;
        assert!(!is_pending);
        assert_eq!(lengths(&folder).1, 0);
    }
}
