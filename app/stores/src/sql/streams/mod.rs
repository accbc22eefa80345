//! Durable stream log over SQL: a row per batch, keyed by the number of its last event.

mod frames;

use async_trait::async_trait;
use bytes::Bytes;
use deerflow_core::ids::RunId;
use deerflow_runtime::runs::store::StoreError;
use deerflow_runtime::stream_bridge::{
    EventId, LogBatch, LogOutline, LogPage, LogRange, StreamEvent, StreamLog, StreamLogError,
    TerminalKind,
};
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, QueryResult, Statement, Value,
};

use crate::db::connect::Database;
use crate::db::error::{DbFailure, FromDbFailure, read};
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::{TxError, TxFuture};

/// Stream log over SQL.
#[derive(Debug, Clone)]
pub struct SqlStreamLog {
    db: Database,
}

impl SqlStreamLog {
    /// Creates a log over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }

    async fn query_rows<const N: usize>(
        &self,
        sql: &str,
        values: [Value; N],
    ) -> Result<Vec<QueryResult>, StoreError> {
        read(query_rows(self.db.reads(), sql, values).await)
    }
}

/// Maximum number of rows of one page.
const ROWS_PER_PAGE: i64 = 4;

const PAGE: &str = "\
    SELECT first_seq, last_seq, attempt, ended, frames FROM stream_log \
    WHERE run_id = $1 AND last_seq >= $2 ORDER BY last_seq LIMIT $3";

const ROWS: &str = "SELECT first_seq, last_seq, attempt, ended FROM stream_log WHERE run_id = $1 AND last_seq >= $2 ORDER BY last_seq";

const FORGET: &str = "DELETE FROM stream_log WHERE run_id = ?";

#[async_trait]
impl StreamLog for SqlStreamLog {
    async fn append(&self, batch: LogBatch) -> Result<(), StreamLogError> {
        self.db.writes().run(batch, append).await
    }

    async fn read(&self, run_id: &RunId, next: u64, limit: usize) -> Result<LogPage, StoreError> {
        // The previous row may contain the end of the stream.
        let from = to_i64(next).saturating_sub(1);
        let rows = self
            .query_rows(
                PAGE,
                [run_id.as_str().into(), from.into(), ROWS_PER_PAGE.into()],
            )
            .await?;
        let mut page = LogPage::default();
        for row in &rows {
            let (part, frames) = read(
                Part::of(row).and_then(|part| Ok((part, row.try_get_by_index::<Vec<u8>>(4)?))),
            )?;
            let next_seq = next + page.events.len() as u64;
            if part.first > next_seq || page.events.len() >= limit {
                break;
            }
            let damaged = |reason| {
                StoreError::Failed(format!(
                    "events of run {run_id} up to {} are damaged: {reason}",
                    part.last
                ))
            };
            let events = frames::decode(
                Bytes::from(frames),
                EventId {
                    seq: part.first,
                    attempt: part.attempt,
                },
            )
            .map_err(damaged)?;
            let remaining = limit - page.events.len();
            page.events.extend(
                events
                    .into_iter()
                    .filter(|event| event.id.seq >= next_seq)
                    .take(remaining),
            );
            page.end = part
                .end
                .filter(|_| next + page.events.len() as u64 == part.last + 1);
        }
        Ok(page)
    }

    async fn outline(&self, run_id: &RunId) -> Result<LogOutline, StoreError> {
        let mut outline = LogOutline::default();
        for row in self
            .query_rows(ROWS, [run_id.as_str().into(), 0_i64.into()])
            .await?
        {
            let part = read(Part::of(&row))?;
            if part.first <= part.last {
                outline.push(LogRange {
                    first: part.first,
                    last: part.last,
                    attempt: part.attempt,
                });
            }
            outline.end = outline.end.or(part.end.map(|kind| (part.last, kind)));
        }
        Ok(outline)
    }

    async fn forget(&self, run_id: &RunId) -> Result<(), StoreError> {
        self.db
            .writes()
            .release(run_id.clone(), |tx, run| Box::pin(forget(tx, run)))
            .await
    }
}

async fn query_rows<const N: usize>(
    db: &impl ConnectionTrait,
    sql: &str,
    values: [Value; N],
) -> Result<Vec<QueryResult>, DbErr> {
    db.query_all_raw(Statement::from_sql_and_values(
        db.get_database_backend(),
        sql,
        values,
    ))
    .await
}

/// A row without its events. A row with only the end is empty: its first number is greater than its
/// last.
#[derive(Debug, Clone, Copy)]
struct Part {
    first: u64,
    last: u64,
    attempt: u32,
    end: Option<TerminalKind>,
}

impl Part {
    fn of(row: &QueryResult) -> Result<Self, DbErr> {
        let number = |column| row.try_get_by_index::<i64>(column).map(i64::unsigned_abs);
        let attempt = u32::try_from(number(2)?).unwrap_or(u32::MAX);
        let ended: Option<String> = row.try_get_by_index(3)?;
        Ok(Self {
            first: number(0)?,
            last: number(1)?,
            attempt,
            end: ended.map(|word| kind_of(&word)),
        })
    }
}

fn word_of(kind: TerminalKind) -> &'static str {
    match kind {
        TerminalKind::End => "end",
        TerminalKind::Error => "error",
        TerminalKind::Cancel => "cancel",
    }
}

fn kind_of(word: &str) -> TerminalKind {
    match word {
        "error" => TerminalKind::Error,
        "cancel" => TerminalKind::Cancel,
        _ => TerminalKind::End,
    }
}

fn to_i64(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

/// Locks the run's row until the transaction ends, so that no other node takes the run in the
/// meantime.
fn attempt_of(backend: DbBackend) -> &'static str {
    match backend {
        DbBackend::Postgres => "SELECT attempt FROM runs WHERE run_id = $1 FOR SHARE",
        _ => "SELECT attempt FROM runs WHERE run_id = $1",
    }
}

const REPLACE: &str = "DELETE FROM stream_log WHERE run_id = ? AND last_seq >= ? AND attempt < ?";

/// A row with only the end is merged with the row of the last event, whichever is written first.
const APPEND: &str = "\
    INSERT INTO stream_log (run_id, last_seq, first_seq, attempt, ended, frames) VALUES (?, ?, ?, ?, ?, ?) \
    ON CONFLICT (run_id, last_seq) DO UPDATE SET \
        ended = COALESCE(stream_log.ended, excluded.ended), \
        attempt = CASE WHEN excluded.first_seq <= excluded.last_seq THEN excluded.attempt ELSE stream_log.attempt END, \
        frames = CASE WHEN excluded.first_seq <= excluded.last_seq THEN excluded.frames ELSE stream_log.frames END, \
        first_seq = CASE WHEN excluded.first_seq <= excluded.last_seq THEN excluded.first_seq ELSE stream_log.first_seq END";

fn append<'a>(
    tx: &'a DatabaseTransaction,
    batch: &'a LogBatch,
) -> TxFuture<'a, (), StreamLogError> {
    Box::pin(async move {
        let run = batch.run_id.as_str();
        let Some(row) = query_rows(tx, attempt_of(tx.get_database_backend()), [run.into()])
            .await?
            .pop()
        else {
            return Err(TxError::Refused(StreamLogError::Gone(batch.run_id.clone())));
        };
        let current = u32::try_from(row.try_get_by_index::<i64>(0)?).unwrap_or(u32::MAX);
        if current > batch.attempt {
            return Err(TxError::Refused(StreamLogError::Fenced {
                run_id: batch.run_id.clone(),
                attempt: batch.attempt,
                current,
            }));
        }
        let mut stored = Vec::new();
        for row in query_rows(tx, ROWS, [run.into(), to_i64(batch.before).into()]).await? {
            stored.push(Part::of(&row)?);
        }
        let mut statements = StatementBatch::new(tx);
        for events in missing(batch, &stored) {
            let (first, last) = (events[0].id, events[events.len() - 1].id);
            let attempt = i64::from(first.attempt);
            let superseded = |part: &Part| part.attempt < first.attempt && part.last >= first.seq;
            if stored.iter().any(superseded) {
                statements.add(
                    REPLACE,
                    [run.into(), to_i64(first.seq).into(), attempt.into()],
                );
                stored.retain(|part| !superseded(part));
            }
            let (last, first) = (to_i64(last.seq).into(), to_i64(first.seq).into());
            let frames = frames::encode(events).into();
            statements.add(
                APPEND,
                [
                    run.into(),
                    last,
                    first,
                    attempt.into(),
                    None::<String>.into(),
                    frames,
                ],
            );
        }
        if let Some(kind) = batch
            .end
            .filter(|_| stored.iter().all(|part| part.end.is_none()))
        {
            let (last, first) = (to_i64(batch.tail()), to_i64(batch.tail() + 1));
            let (attempt, ended) = (i64::from(batch.attempt).into(), word_of(kind).into());
            statements.add(
                APPEND,
                [
                    run.into(),
                    last.into(),
                    first.into(),
                    attempt,
                    ended,
                    Vec::<u8>::new().into(),
                ],
            );
        }
        statements.run(tx).await?;
        Ok(())
    })
}

/// Returns the missing events of a batch, split at stored events and where the attempt changes.
fn missing<'a>(batch: &'a LogBatch, stored: &[Part]) -> Vec<&'a [StreamEvent]> {
    let is_stored = |id: EventId| {
        stored
            .iter()
            .any(|part| part.attempt >= id.attempt && (part.first..=part.last).contains(&id.seq))
    };
    let alike = |one: &StreamEvent, next: &StreamEvent| {
        one.id.attempt == next.id.attempt && is_stored(one.id) == is_stored(next.id)
    };
    batch
        .events
        .chunk_by(alike)
        .filter(|events| !is_stored(events[0].id))
        .collect()
}

async fn forget(tx: &DatabaseTransaction, run: &RunId) -> Result<(), TxError<StoreError>> {
    let mut statements = StatementBatch::new(tx);
    statements.add(FORGET, [run.as_str().into()]);
    statements.run(tx).await?;
    Ok(())
}

impl FromDbFailure for StreamLogError {
    fn from_db_failure(failure: DbFailure) -> Self {
        Self::Store(failure.into())
    }
}
