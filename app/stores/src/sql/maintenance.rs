//! Maintenance duties that one process performs for all, and deletion of old events.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::ids::ThreadId;
use deerflow_domain::maintenance::{ChangedThread, MaintenanceStore};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, QueryResult, Statement, Value,
};

use crate::db::clock::now_of;
use crate::db::connect::Database;
use crate::db::entity::{micros, moment};
use crate::db::error::read;
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::TxFuture;

/// Maintenance store over SQL.
#[derive(Debug, Clone)]
pub struct SqlMaintenanceStore {
    db: Database,
}

impl SqlMaintenanceStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

#[async_trait]
impl MaintenanceStore for SqlMaintenanceStore {
    async fn acquire_duty(
        &self,
        duty: &str,
        holder: &str,
        ttl: Duration,
    ) -> Result<bool, StoreError> {
        let ttl = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX / 2);
        self.db
            .writes()
            .release((duty.to_owned(), holder.to_owned(), ttl), acquire_duty)
            .await
    }

    async fn delete_run_events(
        &self,
        before: DateTime<Utc>,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let mut deleted = 0;
        while deleted < limit {
            let remaining = i64::try_from(limit - deleted).unwrap_or(i64::MAX);
            let Some(events) =
                read(find_expired_events(self.db.reads(), micros(before), remaining).await)?
            else {
                break;
            };
            deleted += self.db.writes().release(events, delete_events).await?;
        }
        Ok(deleted)
    }

    async fn delete_streams(
        &self,
        before: DateTime<Utc>,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.db
            .writes()
            .release((micros(before), limit), delete_streams)
            .await
    }

    async fn changed_threads(
        &self,
        walk: &str,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<ChangedThread>, StoreError> {
        let rows = read(
            changed(
                self.db.reads(),
                walk,
                micros(until),
                i64::try_from(limit).unwrap_or(i64::MAX),
            )
            .await,
        )?;
        Ok(read(
            rows.iter()
                .map(changed_thread)
                .collect::<Result<Vec<_>, _>>(),
        )?
        .into_iter()
        .flatten()
        .collect())
    }

    async fn save_walk_position(
        &self,
        walk: &str,
        up_to: &ChangedThread,
    ) -> Result<(), StoreError> {
        let mark = WalkMark {
            at: micros(up_to.at),
            id: up_to.thread.to_string(),
        };
        self.db
            .writes()
            .release((walk.to_owned(), mark), save_mark)
            .await
    }
}

/// Selects threads that changed after a mark. A dedicated index serves it.
const CHANGED: &str = "\
    SELECT state_updated_at, thread_id FROM threads_meta \
    WHERE state_updated_at <= $1 AND state_updated_at >= $2 AND (state_updated_at > $2 OR thread_id > $3) \
    ORDER BY state_updated_at, thread_id LIMIT $4";

async fn changed(
    reads: &DatabaseConnection,
    walk: &str,
    until: i64,
    limit: i64,
) -> Result<Vec<QueryResult>, DbErr> {
    let mark = mark(reads, walk).await?;
    query_rows(
        reads,
        CHANGED,
        [until.into(), mark.at.into(), mark.id.into(), limit.into()],
    )
    .await
}

/// Returns `None` for a thread with an invalid id.
fn changed_thread(row: &QueryResult) -> Result<Option<ChangedThread>, DbErr> {
    let (at, thread): (i64, String) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
    Ok(ThreadId::parse(thread).ok().map(|thread| ChangedThread {
        at: moment(at),
        thread,
    }))
}

fn save_mark<'a>(
    tx: &'a DatabaseTransaction,
    (walk, mark): &'a (String, WalkMark),
) -> TxFuture<'a, ()> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        statements.add(
            SET_MARK,
            [
                walk.as_str().into(),
                mark.id.as_str().into(),
                mark.at.into(),
            ],
        );
        statements.run(tx).await?;
        Ok(())
    })
}

/// Deletes the logged events of ended runs. The table is empty unless there was an outage, or runs
/// are very long.
const DELETE_STREAMS: &str = "\
    DELETE FROM stream_log WHERE (run_id, last_seq) IN (\
        SELECT s.run_id, s.last_seq FROM stream_log s JOIN runs r ON r.run_id = s.run_id \
        WHERE r.status NOT IN ('pending', 'starting', 'running') AND r.updated_at <= ? ORDER BY s.run_id, s.last_seq LIMIT ?) \
    RETURNING 'gone'";

fn delete_streams<'a>(
    tx: &'a DatabaseTransaction,
    (before, limit): &'a (i64, i64),
) -> TxFuture<'a, usize> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        statements.add(DELETE_STREAMS, [(*before).into(), (*limit).into()]);
        Ok(statements.run(tx).await?.len())
    })
}

fn acquire_duty<'a>(
    tx: &'a DatabaseTransaction,
    (duty, holder, ttl): &'a (String, String, i64),
) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let backend = tx.get_database_backend();
        let now = now_of(backend);
        let sql = format!(
            "INSERT INTO duties (name, holder, held_until) VALUES ($1, $2, {now} + {ttl}) \
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until \
             WHERE duties.holder = excluded.holder OR duties.held_until <= {now}"
        );
        let values = [Value::from(duty.as_str()), Value::from(holder.as_str())];
        let updated = tx
            .execute_raw(Statement::from_sql_and_values(backend, sql, values))
            .await?;
        Ok(updated.rows_affected() == 1)
    })
}

/// Progress of a walk: the id of the last processed run or thread, and its time of change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WalkMark {
    at: i64,
    id: String,
}

/// Reads the mark of a walk. It is a row of `duties`, with the id as holder and the time of change
/// as end.
async fn mark(reads: &DatabaseConnection, walk: &str) -> Result<WalkMark, DbErr> {
    match query_rows(reads, READ_MARK, [walk.into()]).await?.first() {
        Some(row) => Ok(WalkMark {
            at: row.try_get_by_index(0)?,
            id: row.try_get_by_index(1)?,
        }),
        None => Ok(WalkMark {
            at: i64::MIN,
            id: String::new(),
        }),
    }
}

/// Name of the walk through the events of ended runs, in the order of [`NEXT_ENDED`].
const JOURNAL_WALK: &str = "journals looked through";
/// Number of runs that are processed at a time.
const RUNS_PER_PAGE: i64 = 200;

const READ_MARK: &str = "SELECT held_until, holder FROM duties WHERE name = $1";

/// Selects runs that ended after a mark. A dedicated index serves it.
const NEXT_ENDED: &str = "\
    SELECT updated_at, run_id, thread_id FROM runs \
    WHERE status <> 'pending' AND status <> 'starting' AND status <> 'running' AND updated_at <= $1 \
        AND updated_at >= $2 AND (updated_at > $2 OR run_id > $3) \
    ORDER BY updated_at, run_id LIMIT $4";

const EVENTS_OF_RUN: &str =
    "SELECT seq FROM run_events WHERE thread_id = $1 AND run_id = $2 ORDER BY seq LIMIT $3";

/// Events of one run, up to `last_seq`.
#[derive(Debug)]
struct RunEvents {
    thread_id: String,
    run_id: String,
    last_seq: i64,
}

/// Events to delete, and the mark up to which their deletion leaves no old events.
type ExpiredEvents = (Vec<RunEvents>, Option<WalkMark>);

/// Finds up to `limit` events of runs that had ended by `before`, without the writer. Returns `None`
/// if there are no more runs.
async fn find_expired_events(
    reads: &DatabaseConnection,
    before: i64,
    limit: i64,
) -> Result<Option<ExpiredEvents>, DbErr> {
    let mark = mark(reads, JOURNAL_WALK).await?;
    let runs = query_rows(
        reads,
        NEXT_ENDED,
        [
            before.into(),
            mark.at.into(),
            mark.id.into(),
            RUNS_PER_PAGE.into(),
        ],
    )
    .await?;
    if runs.is_empty() {
        return Ok(None);
    }
    let (mut events, mut remaining, mut finished_up_to) = (Vec::new(), limit, None);
    for run in runs {
        let run_id: String = run.try_get_by_index(1)?;
        let thread_id: String = run.try_get_by_index(2)?;
        let rows = query_rows(
            reads,
            EVENTS_OF_RUN,
            [
                thread_id.as_str().into(),
                run_id.as_str().into(),
                remaining.into(),
            ],
        )
        .await?;
        if let Some(last) = rows.last() {
            events.push(RunEvents {
                thread_id,
                run_id: run_id.clone(),
                last_seq: last.try_get_by_index(0)?,
            });
        }
        remaining -= i64::try_from(rows.len()).unwrap_or(i64::MAX);
        // The last run may have more events.
        if remaining <= 0 {
            break;
        }
        finished_up_to = Some(WalkMark {
            at: run.try_get_by_index(0)?,
            id: run_id,
        });
    }
    Ok(Some((events, finished_up_to)))
}

async fn query_rows<const N: usize>(
    reads: &DatabaseConnection,
    sql: &str,
    values: [Value; N],
) -> Result<Vec<QueryResult>, DbErr> {
    reads
        .query_all_raw(Statement::from_sql_and_values(
            reads.get_database_backend(),
            sql,
            values,
        ))
        .await
}

const DELETE_EVENTS: &str =
    "DELETE FROM run_events WHERE thread_id = ? AND run_id = ? AND seq <= ? RETURNING 'gone'";

const SET_MARK: &str = "\
    INSERT INTO duties (name, holder, held_until) VALUES (?, ?, ?) \
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until";

fn delete_events<'a>(
    tx: &'a DatabaseTransaction,
    (events, mark): &'a ExpiredEvents,
) -> TxFuture<'a, usize> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        for RunEvents {
            thread_id,
            run_id,
            last_seq,
        } in events
        {
            statements.add(
                DELETE_EVENTS,
                [
                    thread_id.as_str().into(),
                    run_id.as_str().into(),
                    (*last_seq).into(),
                ],
            );
        }
        if let Some(mark) = mark {
            statements.add(
                SET_MARK,
                [JOURNAL_WALK.into(), mark.id.as_str().into(), mark.at.into()],
            );
        }
        Ok(statements.run(tx).await?.len())
    })
}
