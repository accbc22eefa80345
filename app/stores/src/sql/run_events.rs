//! Run event store over SQL. A counter per thread assigns the seq, in the transaction that writes
//! the events.

use std::collections::BTreeMap;

use async_trait::async_trait;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_runtime::runs::store::{
    EventQuery, NewRunEvent, Order, RunEvent, RunEventStore, StoreError, category,
};
use rusqlite::{OptionalExtension, params};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, ExprTrait,
    PaginatorTrait, QueryFilter, QueryOrder, QuerySelect, Select, Statement, Value,
};

use crate::db::connect::Database;
use crate::db::entity::run_event::{self, LONG_CONTENT};
use crate::db::entity::{micros, moment};
use crate::db::error::read;
use crate::db::json::{from_json, json_text};
use crate::db::long_values;
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::{TxError, TxFuture};

/// Run event store over SQL.
#[derive(Debug, Clone)]
pub struct SqlRunEventStore {
    db: Database,
}

impl SqlRunEventStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

#[async_trait]
impl RunEventStore for SqlRunEventStore {
    async fn append(&self, events: Vec<NewRunEvent>) -> Result<Vec<u64>, StoreError> {
        if events.is_empty() {
            return Ok(vec![]);
        }
        self.db
            .writes()
            .run(events, |tx, events| Box::pin(append_events(tx, events)))
            .await
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &EventQuery,
        owner: &Owner,
    ) -> Result<Vec<RunEvent>, StoreError> {
        let mut select = owned(thread, owner)?.limit(query.limit as u64);
        if let Some(run) = &query.run_id {
            select = select.filter(run_event::Column::RunId.eq(run.as_str()));
        }
        if let Some(category) = &query.category {
            select = select.filter(run_event::Column::Category.eq(category.as_str()));
        }
        if !query.event_types.is_empty() {
            select = select.filter(
                run_event::Column::EventType.is_in(query.event_types.iter().map(String::as_str)),
            );
        }
        if let Some(after) = query.after_seq {
            select = select.filter(run_event::Column::Seq.gt(saturating_i64(after)));
        }
        if let Some(before) = query.before_seq {
            select = select.filter(run_event::Column::Seq.lt(saturating_i64(before)));
        }
        let mut rows = match query.order {
            Order::Oldest => read(
                select
                    .order_by_asc(run_event::Column::Seq)
                    .all(self.db.reads())
                    .await,
            )?,
            Order::Newest => read(
                select
                    .order_by_desc(run_event::Column::Seq)
                    .all(self.db.reads())
                    .await,
            )?,
        };
        if query.order == Order::Newest {
            rows.reverse();
        }
        Ok(rows.into_iter().filter_map(readable).collect())
    }

    async fn count_messages(&self, thread: &ThreadId, owner: &Owner) -> Result<u64, StoreError> {
        read(
            owned(thread, owner)?
                .filter(run_event::Column::Category.eq(category::MESSAGE))
                .count(self.db.reads())
                .await,
        )
    }

    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), StoreError> {
        self.db
            .writes()
            .release((thread.clone(), run.clone()), delete_run_events)
            .await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.db
            .writes()
            .release(thread.clone(), |tx, thread| {
                Box::pin(async move { Ok(delete_thread_events(tx, thread).await?) })
            })
            .await
    }
}

fn owned(thread: &ThreadId, owner: &Owner) -> Result<Select<run_event::Entity>, StoreError> {
    let select = run_event::Entity::find().filter(run_event::Column::ThreadId.eq(thread.as_str()));
    Ok(match owner.resolve()? {
        Some(user) => select.filter(run_event::Column::UserId.eq(user)),
        None => select,
    })
}

fn saturating_i64(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

/// Reserves numbers in a thread's journal. The row stays locked until the end of the transaction,
/// so that seq rises in commit order.
const TAKE_SEQS: &str = "\
    INSERT INTO run_event_counters (thread_id, last_seq) VALUES (?, ?) \
    ON CONFLICT (thread_id) DO UPDATE SET last_seq = run_event_counters.last_seq + excluded.last_seq \
    RETURNING 'last_seq', last_seq, thread_id";

/// Values of one event. Its seq is written as its distance from the last reserved one.
const EVENT: &str =
    "((SELECT last_seq FROM run_event_counters WHERE thread_id = ?) - ?, ?, ?, ?, ?, ?, ?, ?, ?)";
const EVENTS: &str = "run_events (seq, thread_id, run_id, user_id, event_type, category, content, event_metadata, created_at)";

/// Adds the inserts of events, in order.
pub(crate) fn add_events(statements: &mut StatementBatch, events: &[NewRunEvent]) {
    let mut remaining: BTreeMap<&str, i64> = BTreeMap::new();
    for event in events {
        *remaining.entry(event.thread_id.as_str()).or_default() += 1;
    }
    // Sorted by thread id, so that two batches over the same threads do not deadlock.
    for (thread, count) in &remaining {
        statements.add(TAKE_SEQS, [(*thread).into(), (*count).into()]);
    }
    statements.add_rows(
        EVENTS,
        EVENT,
        events.iter().map(|event| {
            let remaining = remaining.entry(event.thread_id.as_str()).or_default();
            *remaining -= 1;
            event_values(event, *remaining)
        }),
    );
}

const INSERT_EVENT: &str = "\
    INSERT INTO run_events (seq, thread_id, run_id, user_id, event_type, category, content, event_metadata, created_at) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

/// Inserts an event with space for a long content: its length in bytes is the last value.
const RESERVE_EVENT: &str = "\
    INSERT INTO run_events (seq, thread_id, run_id, user_id, event_type, category, content, event_metadata, created_at, long_content) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ZEROBLOB(?10))";

const LAST_SEQ: &str = "SELECT last_seq FROM run_event_counters WHERE thread_id = ?1";
const SET_LAST_SEQ: &str = "UPDATE run_event_counters SET last_seq = ?2 WHERE thread_id = ?1";
const INSERT_LAST_SEQ: &str =
    "INSERT INTO run_event_counters (thread_id, last_seq) VALUES (?1, ?2)";

/// Reserves numbers in a thread's journal, and returns the last one. Two statements are cheaper
/// than one that returns a row, for which SQLite creates a temporary table.
fn take_seqs(connection: &rusqlite::Connection, thread: &str, count: i64) -> rusqlite::Result<i64> {
    let mut last_seq = connection.prepare_cached(LAST_SEQ)?;
    let former: Option<i64> = last_seq.query_row([thread], |row| row.get(0)).optional()?;
    let last = former.unwrap_or_default() + count;
    let write = if former.is_some() {
        SET_LAST_SEQ
    } else {
        INSERT_LAST_SEQ
    };
    connection
        .prepare_cached(write)?
        .execute(params![thread, last])?;
    Ok(last)
}

/// Inserts events of one thread in order, with prepared statements.
pub(crate) fn insert_events(
    connection: &rusqlite::Connection,
    events: &[NewRunEvent],
) -> rusqlite::Result<()> {
    let Some(first) = events.first() else {
        return Ok(());
    };
    let count = i64::try_from(events.len()).unwrap_or(i64::MAX);
    let last = take_seqs(connection, first.thread_id.as_str(), count)?;
    let mut insert = connection.prepare_cached(INSERT_EVENT)?;
    for (event, seq) in events.iter().zip(last - count + 1..) {
        let content = event.content.json();
        let is_long = long_values::is_long(&content);
        let values = params![
            seq,
            event.thread_id.as_str(),
            event.run_id.as_str(),
            event.user_id,
            event.event_type,
            event.category,
            if is_long { LONG_CONTENT } else { &content },
            json_text(&event.metadata),
            micros(event.created_at),
            long_values::length(&content),
        ];
        if is_long {
            connection.prepare_cached(RESERVE_EVENT)?.execute(values)?;
            long_values::fill_inserted(connection, "run_events", "long_content", &content)?;
        } else {
            insert.execute(&values[..9])?;
        }
    }
    Ok(())
}

/// Writes events in order and returns the seq of each.
async fn append_events<E>(
    tx: &DatabaseTransaction,
    events: &[NewRunEvent],
) -> Result<Vec<u64>, TxError<E>> {
    let mut statements = StatementBatch::new(tx);
    add_events(&mut statements, events);
    let mut next: BTreeMap<String, i64> = BTreeMap::new();
    for row in statements.run(tx).await? {
        let (last, thread): (i64, String) = (row.try_get_by_index(1)?, row.try_get_by_index(2)?);
        next.insert(thread, last + 1);
    }
    for event in events {
        *next.entry(event.thread_id.to_string()).or_default() -= 1;
    }
    let seq_of = |event: &NewRunEvent| {
        let seq = next.entry(event.thread_id.to_string()).or_default();
        *seq += 1;
        u64::try_from(*seq - 1).unwrap_or_default()
    };
    Ok(events.iter().map(seq_of).collect())
}

/// Deletes a thread's events and its counter.
pub(crate) async fn delete_thread_events(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
) -> Result<(), DbErr> {
    run_event::Entity::delete_many()
        .filter(run_event::Column::ThreadId.eq(thread.as_str()))
        .exec(tx)
        .await?;
    let counter = "DELETE FROM run_event_counters WHERE thread_id = $1";
    tx.execute_raw(Statement::from_sql_and_values(
        tx.get_database_backend(),
        counter,
        [Value::from(thread.as_str())],
    ))
    .await?;
    Ok(())
}

fn delete_run_events<'a>(
    tx: &'a DatabaseTransaction,
    (thread, run): &'a (ThreadId, RunId),
) -> TxFuture<'a, ()> {
    Box::pin(async move {
        let of_run = run_event::Column::ThreadId
            .eq(thread.as_str())
            .and(run_event::Column::RunId.eq(run.as_str()));
        run_event::Entity::delete_many()
            .filter(of_run)
            .exec(tx)
            .await?;
        Ok(())
    })
}

fn event_values(event: &NewRunEvent, before_last: i64) -> Vec<Value> {
    vec![
        event.thread_id.as_str().into(),
        before_last.into(),
        event.thread_id.as_str().into(),
        event.run_id.as_str().into(),
        event.user_id.clone().into(),
        event.event_type.as_str().into(),
        event.category.as_str().into(),
        event.content.json().into_owned().into(),
        json_text(&event.metadata).into(),
        micros(event.created_at).into(),
    ]
}

/// Returns `None` for an unreadable row and logs it, so that it does not hide the others.
fn readable(row: run_event::Model) -> Option<RunEvent> {
    let (thread, seq) = (row.thread_id.clone(), row.seq);
    event(row)
        .inspect_err(|reason| {
            tracing::error!(
                thread,
                seq,
                reason,
                "an event is damaged, omitted from a list"
            )
        })
        .ok()
}

fn event(row: run_event::Model) -> Result<RunEvent, String> {
    let content: serde_json::Value = match &row.long_content {
        Some(long) => serde_json::from_slice(long).map_err(|error| error.to_string())?,
        None => from_json(&row.content)?,
    };
    Ok(RunEvent {
        seq: u64::try_from(row.seq).map_err(|error| error.to_string())?,
        event: NewRunEvent {
            thread_id: ThreadId::parse(row.thread_id).map_err(|error| error.to_string())?,
            run_id: RunId::parse(row.run_id).map_err(|error| error.to_string())?,
            user_id: row.user_id,
            event_type: row.event_type,
            category: row.category,
            content: content.into(),
            metadata: from_json(&row.event_metadata)?,
            created_at: moment(row.created_at),
        },
    })
}
