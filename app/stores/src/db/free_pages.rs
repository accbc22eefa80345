//! Returns the space of deleted rows in a SQLite file to the file system, in small writes between
//! those of the server.

use std::time::Duration;

use deerflow_core::tasks::{TaskKind, Tasks};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, Statement};
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
        while stop
            .run_until_cancelled(tokio::time::sleep(INTERVAL))
            .await
            .is_some()
        {
            match free_excess(&reads, &writes, &stop).await {
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

/// Frees pages until no more are free than later rows need. Returns the pages at the end.
async fn free_excess(
    reads: &DatabaseConnection,
    writes: &Writes,
    stop: &CancellationToken,
) -> Result<Pages, StoreError> {
    loop {
        let pages = crate::db::error::read(pages_of(reads).await)?;
        if !pages.returns || !pages.has_excess() || stop.is_cancelled() {
            return Ok(pages);
        }
        writes.release((), free_step).await?;
        tokio::time::sleep(PAUSE).await;
    }
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

    #[tokio::test]
    async fn pages_of_deleted_rows_are_returned() {
        let (folder, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
        let config = DatabaseConfig::Sqlite(folder.path().to_owned());
        let db = Database::open(&config, &tasks).await.unwrap();
        db.writes().release(FILL, execute).await.unwrap();
        let filled = pages_of(db.reads()).await.unwrap();
        assert!(filled.returns && filled.has_excess(), "{filled:?}");
        let freed = free_excess(db.reads(), db.writes(), &CancellationToken::new())
            .await
            .unwrap();
        assert!(!freed.has_excess(), "{freed:?}");
        assert!(freed.all < filled.all - 1_000, "{filled:?} {freed:?}");
    }
}
