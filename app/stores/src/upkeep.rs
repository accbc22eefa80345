//! Who does what one process does for all, and old rows of the journal.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::upkeep::{ChangedThread, UpkeepStore};
use futures_util::future::BoxFuture;
use harness::ids::ThreadId;
use harness::runtime::runs::store::StoreError;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, QueryResult, Statement, Value,
};

use crate::connect::Database;
use crate::entity::{micros, moment};
use crate::error::read;
use crate::nodes::now_of;
use crate::script::Script;
use crate::tx::TxError;

/// Upkeep over SQL.
#[derive(Debug, Clone)]
pub struct SqlUpkeepStore {
    db: Database,
}

impl SqlUpkeepStore {
    /// A view of `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

type Done<'a, T> = BoxFuture<'a, Result<T, TxError<StoreError>>>;

#[async_trait]
impl UpkeepStore for SqlUpkeepStore {
    async fn take_duty(&self, duty: &str, holder: &str, ttl: Duration) -> Result<bool, StoreError> {
        let ttl = i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX / 2);
        self.db
            .writes()
            .release((duty.to_owned(), holder.to_owned(), ttl), take_duty)
            .await
    }

    async fn forget_events(&self, before: DateTime<Utc>, most: usize) -> Result<usize, StoreError> {
        let mut gone = 0;
        while gone < most {
            let left = i64::try_from(most - gone).unwrap_or(i64::MAX);
            let Some(found) = read(look(self.db.reads(), micros(before), left).await)? else {
                break;
            };
            gone += self.db.writes().release(found, forget).await?;
        }
        Ok(gone)
    }

    async fn forget_streams(
        &self,
        before: DateTime<Utc>,
        most: usize,
    ) -> Result<usize, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.db
            .writes()
            .release((micros(before), most), forget_streams)
            .await
    }

    async fn changed_threads(
        &self,
        walk: &str,
        until: DateTime<Utc>,
        most: usize,
    ) -> Result<Vec<ChangedThread>, StoreError> {
        let rows = read(
            changed(
                self.db.reads(),
                walk,
                micros(until),
                i64::try_from(most).unwrap_or(i64::MAX),
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

    async fn note_walked(&self, walk: &str, up_to: &ChangedThread) -> Result<(), StoreError> {
        let mark = Mark {
            at: micros(up_to.at),
            id: up_to.thread.to_string(),
        };
        self.db
            .writes()
            .release((walk.to_owned(), mark), note)
            .await
    }
}

/// Threads behind a mark, by an index of their own.
const CHANGED: &str = "\
    SELECT state_updated_at, thread_id FROM threads_meta \
    WHERE state_updated_at <= $1 AND state_updated_at >= $2 AND (state_updated_at > $2 OR thread_id > $3) \
    ORDER BY state_updated_at, thread_id LIMIT $4";

async fn changed(
    reads: &DatabaseConnection,
    walk: &str,
    until: i64,
    most: i64,
) -> Result<Vec<QueryResult>, DbErr> {
    let mark = mark(reads, walk).await?;
    ask(
        reads,
        CHANGED,
        [until.into(), mark.at.into(), mark.id.into(), most.into()],
    )
    .await
}

/// A thread whose id nobody could have given is left out.
fn changed_thread(row: &QueryResult) -> Result<Option<ChangedThread>, DbErr> {
    let (at, thread): (i64, String) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
    Ok(ThreadId::parse(thread).ok().map(|thread| ChangedThread {
        at: moment(at),
        thread,
    }))
}

fn note<'a>(tx: &'a DatabaseTransaction, (walk, mark): &'a (String, Mark)) -> Done<'a, ()> {
    Box::pin(async move {
        let mut script = Script::new(tx);
        script.add(
            SET_MARK,
            [
                walk.as_str().into(),
                mark.id.as_str().into(),
                mark.at.into(),
            ],
        );
        script.run(tx).await?;
        Ok(())
    })
}

/// The table is empty unless something went wrong, or runs are very long.
const FORGET_STREAMS: &str = "\
    DELETE FROM stream_log WHERE (run_id, last_seq) IN (\
        SELECT s.run_id, s.last_seq FROM stream_log s JOIN runs r ON r.run_id = s.run_id \
        WHERE r.status NOT IN ('pending', 'starting', 'running') AND r.updated_at <= ? ORDER BY s.run_id, s.last_seq LIMIT ?) \
    RETURNING 'gone'";

fn forget_streams<'a>(
    tx: &'a DatabaseTransaction,
    (before, most): &'a (i64, i64),
) -> Done<'a, usize> {
    Box::pin(async move {
        let mut script = Script::new(tx);
        script.add(FORGET_STREAMS, [(*before).into(), (*most).into()]);
        Ok(script.run(tx).await?.len())
    })
}

fn take_duty<'a>(
    tx: &'a DatabaseTransaction,
    (duty, holder, ttl): &'a (String, String, i64),
) -> Done<'a, bool> {
    Box::pin(async move {
        let backend = tx.get_database_backend();
        let now = now_of(backend);
        let sql = format!(
            "INSERT INTO duties (name, holder, held_until) VALUES ($1, $2, {now} + {ttl}) \
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until \
             WHERE duties.holder = excluded.holder OR duties.held_until <= {now}"
        );
        let values = [Value::from(duty.as_str()), Value::from(holder.as_str())];
        let taken = tx
            .execute_raw(Statement::from_sql_and_values(backend, sql, values))
            .await?;
        Ok(taken.rows_affected() == 1)
    })
}

/// How far something was looked through: up to the run or thread of this id, which was changed then.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    at: i64,
    id: String,
}

/// The mark of a walk is a row of `duties`: the id as its holder, the change as its time.
async fn mark(reads: &DatabaseConnection, walk: &str) -> Result<Mark, DbErr> {
    match ask(reads, READ_MARK, [walk.into()]).await?.first() {
        Some(row) => Ok(Mark {
            at: row.try_get_by_index(0)?,
            id: row.try_get_by_index(1)?,
        }),
        None => Ok(Mark {
            at: i64::MIN,
            id: String::new(),
        }),
    }
}

/// The walk through the journals, in the order of [`NEXT_OVER`].
const JOURNALS: &str = "journals looked through";
/// Runs that are looked through at a time.
const RUNS: i64 = 200;

const READ_MARK: &str = "SELECT held_until, holder FROM duties WHERE name = $1";

/// Runs that are over, behind a mark, by an index of their own.
const NEXT_OVER: &str = "\
    SELECT updated_at, run_id, thread_id FROM runs \
    WHERE status NOT IN ('pending', 'starting', 'running') AND updated_at <= $1 \
        AND updated_at >= $2 AND (updated_at > $2 OR run_id > $3) \
    ORDER BY updated_at, run_id LIMIT $4";

const ROWS_OF_RUN: &str =
    "SELECT seq FROM run_events WHERE thread_id = $1 AND run_id = $2 ORDER BY seq LIMIT $3";

/// Rows of one run, to the last of those that were found.
#[derive(Debug)]
struct Found {
    thread_id: String,
    run_id: String,
    last_seq: i64,
}

/// What a look found, and the run up to which nothing is left then.
type Look = (Vec<Found>, Option<Mark>);

/// Looks outside of the writer for up to `most` rows of runs that were over at `before`; nothing where no runs are left.
async fn look(reads: &DatabaseConnection, before: i64, most: i64) -> Result<Option<Look>, DbErr> {
    let mark = mark(reads, JOURNALS).await?;
    let runs = ask(
        reads,
        NEXT_OVER,
        [before.into(), mark.at.into(), mark.id.into(), RUNS.into()],
    )
    .await?;
    if runs.is_empty() {
        return Ok(None);
    }
    let (mut found, mut left, mut emptied) = (Vec::new(), most, None);
    for run in runs {
        let run_id: String = run.try_get_by_index(1)?;
        let thread_id: String = run.try_get_by_index(2)?;
        let rows = ask(
            reads,
            ROWS_OF_RUN,
            [
                thread_id.as_str().into(),
                run_id.as_str().into(),
                left.into(),
            ],
        )
        .await?;
        if let Some(last) = rows.last() {
            found.push(Found {
                thread_id,
                run_id: run_id.clone(),
                last_seq: last.try_get_by_index(0)?,
            });
        }
        left -= i64::try_from(rows.len()).unwrap_or(i64::MAX);
        // It may have more.
        if left <= 0 {
            break;
        }
        emptied = Some(Mark {
            at: run.try_get_by_index(0)?,
            id: run_id,
        });
    }
    Ok(Some((found, emptied)))
}

async fn ask<const N: usize>(
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

const FORGET_EVENTS: &str =
    "DELETE FROM run_events WHERE thread_id = ? AND run_id = ? AND seq <= ? RETURNING 'gone'";

const SET_MARK: &str = "\
    INSERT INTO duties (name, holder, held_until) VALUES (?, ?, ?) \
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until";

fn forget<'a>(tx: &'a DatabaseTransaction, (found, mark): &'a Look) -> Done<'a, usize> {
    Box::pin(async move {
        let mut script = Script::new(tx);
        for Found {
            thread_id,
            run_id,
            last_seq,
        } in found
        {
            script.add(
                FORGET_EVENTS,
                [
                    thread_id.as_str().into(),
                    run_id.as_str().into(),
                    (*last_seq).into(),
                ],
            );
        }
        if let Some(mark) = mark {
            script.add(
                SET_MARK,
                [JOURNALS.into(), mark.id.as_str().into(), mark.at.into()],
            );
        }
        Ok(script.run(tx).await?.len())
    })
}
