//! Store of thread logs over SQL.

use async_trait::async_trait;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_domain::thread_log::{LoggedEnd, LoggedRun, ThreadLogStore};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
    QuerySelect,
};

use crate::db::connect::Database;
use crate::db::entity::{thread, thread_log_run};
use crate::db::error::read;
use crate::db::tx::TxFuture;

/// Store of thread logs over SQL.
#[derive(Debug, Clone)]
pub struct SqlThreadLog {
    db: Database,
}

impl SqlThreadLog {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

#[async_trait]
impl ThreadLogStore for SqlThreadLog {
    async fn ranges(&self, thread: &ThreadId) -> Result<Vec<LoggedRun>, StoreError> {
        let rows = thread_log_run::Entity::find()
            .filter(thread_log_run::Column::ThreadId.eq(thread.as_str()))
            .order_by_asc(thread_log_run::Column::FirstSeq)
            .all(self.db.reads())
            .await;
        let ranges: Result<_, DbErr> = read(rows)?.into_iter().map(range).collect();
        read(ranges)
    }

    async fn open(&self, thread: &ThreadId, run: &RunId) -> Result<Option<LoggedRun>, StoreError> {
        let key = (thread.to_string(), run.to_string());
        self.db.writes().create(key, open).await
    }

    async fn close(
        &self,
        thread: &ThreadId,
        run: &RunId,
        end: LoggedEnd,
    ) -> Result<Option<LoggedEnd>, StoreError> {
        let key = (thread.to_string(), run.to_string());
        self.db.writes().run((key, end), close).await
    }
}

/// Ids of a thread and of a run.
type Key = (String, String);

fn open<'a>(tx: &'a DatabaseTransaction, key: &'a Key) -> TxFuture<'a, Option<LoggedRun>> {
    Box::pin(async move {
        if let Some(known) = find(tx, key).await? {
            return Ok(Some(known));
        }
        // The lock prevents a deletion of the thread before the write.
        let of_thread = thread::Entity::find_by_id(key.0.as_str());
        if of_thread.lock_shared().one(tx).await?.is_none() {
            return Ok(None);
        }
        let last = thread_log_run::Entity::find()
            .filter(thread_log_run::Column::ThreadId.eq(key.0.as_str()))
            .order_by_desc(thread_log_run::Column::FirstSeq)
            .one(tx)
            .await?;
        let first = last.map(range).transpose()?.map_or(1, |last| last.next());
        let row = thread_log_run::Model {
            thread_id: key.0.clone(),
            run_id: key.1.clone(),
            first_seq: stored(first),
            seq_count: None,
            ended: None,
        };
        let columns = [
            thread_log_run::Column::ThreadId,
            thread_log_run::Column::RunId,
        ];
        thread_log_run::Entity::insert(row.into_active_model())
            .on_conflict(OnConflict::columns(columns).do_nothing().to_owned())
            .exec_without_returning(tx)
            .await?;
        Ok(find(tx, key).await?)
    })
}

fn close<'a>(
    tx: &'a DatabaseTransaction,
    (key, end): &'a (Key, LoggedEnd),
) -> TxFuture<'a, Option<LoggedEnd>> {
    Box::pin(async move {
        thread_log_run::Entity::update_many()
            .col_expr(
                thread_log_run::Column::SeqCount,
                Expr::value(Some(stored(end.count))),
            )
            .col_expr(
                thread_log_run::Column::Ended,
                Expr::value(Some(end.status.as_str())),
            )
            .filter(thread_log_run::Column::ThreadId.eq(key.0.as_str()))
            .filter(thread_log_run::Column::RunId.eq(key.1.as_str()))
            .filter(thread_log_run::Column::SeqCount.is_null())
            .exec(tx)
            .await?;
        Ok(find(tx, key).await?.and_then(|closed| closed.end))
    })
}

async fn find(tx: &DatabaseTransaction, key: &Key) -> Result<Option<LoggedRun>, DbErr> {
    let row = thread_log_run::Entity::find_by_id(key.clone())
        .one(tx)
        .await?;
    row.map(range).transpose()
}

fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn range(row: thread_log_run::Model) -> Result<LoggedRun, DbErr> {
    let damaged = |reason: String| {
        DbErr::Type(format!(
            "the log of run {} is damaged: {reason}",
            row.run_id
        ))
    };
    let number = |number: i64| {
        u64::try_from(number).map_err(|_| damaged(format!("{number} is no position")))
    };
    Ok(LoggedRun {
        run_id: RunId::parse(row.run_id.as_str()).map_err(|error| damaged(error.to_string()))?,
        first: number(row.first_seq)?,
        end: row
            .seq_count
            .map(number)
            .transpose()?
            .map(|count| LoggedEnd {
                count,
                status: row.ended.clone().unwrap_or_default(),
            }),
    })
}
