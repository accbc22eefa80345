//! The durable log of streams: a row per batch, found by the number of its last event.

mod frames;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use harness::ids::RunId;
use harness::runtime::runs::store::StoreError;
use harness::runtime::stream_bridge::{
    EventId, LogBatch, LogOutline, LogPage, LogRange, StreamEvent, StreamLog, StreamLogError,
    TerminalKind,
};
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, QueryResult, Statement, Value,
};

use crate::connect::Database;
use crate::error::{Fault, FromFault, read};
use crate::script::Script;
use crate::tx::TxError;

/// The log over SQL.
#[derive(Debug, Clone)]
pub struct SqlStreamLog {
    db: Database,
}

impl SqlStreamLog {
    /// A view of `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }

    async fn ask<const N: usize>(
        &self,
        sql: &str,
        values: [Value; N],
    ) -> Result<Vec<QueryResult>, StoreError> {
        read(ask(self.db.reads(), sql, values).await)
    }
}

/// Rows that one page is put together from.
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

    async fn read(&self, run_id: &RunId, next: u64, most: usize) -> Result<LogPage, StoreError> {
        // The row before may say that the stream ended with it.
        let from = whole(next).saturating_sub(1);
        let rows = self
            .ask(
                PAGE,
                [run_id.as_str().into(), from.into(), ROWS_PER_PAGE.into()],
            )
            .await?;
        let mut page = LogPage::default();
        for row in &rows {
            let (part, frames) = read(
                Part::of(row).and_then(|part| Ok((part, row.try_get_by_index::<Vec<u8>>(4)?))),
            )?;
            let wanted = next + page.events.len() as u64;
            if part.first > wanted || page.events.len() >= most {
                break;
            }
            let damaged = |why| {
                StoreError::Failed(format!(
                    "events of run {run_id} up to {} are damaged: {why}",
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
            let left = most - page.events.len();
            page.events.extend(
                events
                    .into_iter()
                    .filter(|event| event.id.seq >= wanted)
                    .take(left),
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
            .ask(ROWS, [run_id.as_str().into(), 0_i64.into()])
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

async fn ask<const N: usize>(
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

/// A row without its events. One that only tells the end has none: it begins after its last event.
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

fn whole(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

/// The row of the run stays as it is until the transaction ends: nobody takes the run meanwhile.
fn attempt_of(backend: DbBackend) -> &'static str {
    match backend {
        DbBackend::Postgres => "SELECT attempt FROM runs WHERE run_id = $1 FOR SHARE",
        _ => "SELECT attempt FROM runs WHERE run_id = $1",
    }
}

const REPLACE: &str = "DELETE FROM stream_log WHERE run_id = ? AND last_seq >= ? AND attempt < ?";

/// A row that tells only the end joins the one that has the last event, whichever comes first.
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
) -> BoxFuture<'a, Result<(), TxError<StreamLogError>>> {
    Box::pin(async move {
        let run = batch.run_id.as_str();
        let Some(row) = ask(tx, attempt_of(tx.get_database_backend()), [run.into()])
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
        let mut there = Vec::new();
        for row in ask(tx, ROWS, [run.into(), whole(batch.before).into()]).await? {
            there.push(Part::of(&row)?);
        }
        let mut script = Script::new(tx);
        for events in missing(batch, &there) {
            let (first, last) = (events[0].id, events[events.len() - 1].id);
            let attempt = i64::from(first.attempt);
            let superseded = |part: &Part| part.attempt < first.attempt && part.last >= first.seq;
            if there.iter().any(superseded) {
                script.add(
                    REPLACE,
                    [run.into(), whole(first.seq).into(), attempt.into()],
                );
                there.retain(|part| !superseded(part));
            }
            let (last, first) = (whole(last.seq).into(), whole(first.seq).into());
            let frames = frames::encode(events).into();
            script.add(
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
            .filter(|_| there.iter().all(|part| part.end.is_none()))
        {
            let (last, first) = (whole(batch.tail()), whole(batch.tail() + 1));
            let (attempt, ended) = (i64::from(batch.attempt).into(), word_of(kind).into());
            script.add(
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
        script.run(tx).await?;
        Ok(())
    })
}

/// The events of a batch that are not there, cut where some are, and where the attempt changes.
fn missing<'a>(batch: &'a LogBatch, there: &[Part]) -> Vec<&'a [StreamEvent]> {
    let is_there = |id: EventId| {
        there
            .iter()
            .any(|part| part.attempt >= id.attempt && (part.first..=part.last).contains(&id.seq))
    };
    let alike = |one: &StreamEvent, next: &StreamEvent| {
        one.id.attempt == next.id.attempt && is_there(one.id) == is_there(next.id)
    };
    batch
        .events
        .chunk_by(alike)
        .filter(|events| !is_there(events[0].id))
        .collect()
}

async fn forget(tx: &DatabaseTransaction, run: &RunId) -> Result<(), TxError<StoreError>> {
    let mut script = Script::new(tx);
    script.add(FORGET, [run.as_str().into()]);
    script.run(tx).await?;
    Ok(())
}

impl FromFault for StreamLogError {
    fn from_fault(fault: Fault) -> Self {
        Self::Store(fault.into())
    }
}
