//! The newest checkpoints of many threads at once, for lists.

use std::collections::HashMap;

use harness::ids::ThreadId;
use harness::messages::Message;
use harness::runtime::checkpoint::{CheckpointError, LogRange, Snapshot, expand};
use harness::runtime::runs::store::StoreError;
use harness::state::ThreadState;
use sea_orm::{ColumnTrait, Condition, DatabaseConnection, DbBackend, EntityTrait, FromQueryResult, QueryFilter, Statement};
use serde_json::{Map, Value};

use super::read::{RANGES_PER_SELECT, signed};
use super::row::{channels, damaged, layout, meta};
use crate::entity::{checkpoint, checkpoint_message};
use crate::error::{read, read_checkpoints};

/// A newest checkpoint's row, and how far the log of its thread goes.
#[derive(FromQueryResult)]
struct Newest {
    #[sea_orm(nested)]
    row: checkpoint::Model,
    log_tail: Option<i64>,
}

/// One look into the checkpoints' key per thread, however many checkpoints the threads have.
const NEWEST: &str = "\
    FROM threads_meta t JOIN checkpoints c ON c.thread_id = t.thread_id \
        AND c.checkpoint_id = (SELECT MAX(i.checkpoint_id) FROM checkpoints i WHERE i.thread_id = t.thread_id)";

fn of_threads(select: &str, threads: &[&str], db: &DatabaseConnection) -> Statement {
    let backend = db.get_database_backend();
    let place = |n: usize| if backend == DbBackend::Postgres { format!("${n}") } else { "?".to_owned() };
    let places: Vec<String> = (1..=threads.len()).map(place).collect();
    let sql = format!("{select} {NEWEST} WHERE t.thread_id IN ({})", places.join(", "));
    Statement::from_sql_and_values(backend, sql, threads.iter().map(|thread| sea_orm::Value::from(*thread)))
}

/// The newest snapshots of these threads; those that have none are left out, and so is one that cannot be read.
pub(crate) async fn newest_snapshots(db: &DatabaseConnection, threads: &[ThreadId]) -> Result<Vec<Snapshot>, CheckpointError> {
    if threads.is_empty() {
        return Ok(vec![]);
    }
    let threads: Vec<&str> = threads.iter().map(|thread| thread.as_str()).collect();
    let select = "SELECT c.*, (SELECT MAX(m.place) FROM checkpoint_messages m WHERE m.thread_id = t.thread_id) AS log_tail";
    let rows = read_checkpoints(Newest::find_by_statement(of_threads(select, &threads, db)).all(db).await)?;
    let mut ranges = Vec::new();
    for newest in &rows {
        // One that is unreadable is told of when its snapshot is put together.
        ranges.extend(layout(&newest.row).unwrap_or_default().into_iter().map(|range| (newest.row.thread_id.as_str(), range)));
    }
    let mut messages = messages(db, &ranges).await?;
    let read = rows.iter().map(|newest| snapshot(newest, messages.remove(newest.row.thread_id.as_str()).unwrap_or_default()));
    Ok(read.filter_map(|read| read.inspect_err(|error| tracing::error!(%error, "a state is left out of a list")).ok()).collect())
}

fn snapshot(newest: &Newest, mut messages: HashMap<u64, Message>) -> Result<Snapshot, CheckpointError> {
    let row = &newest.row;
    let mut placed = Vec::with_capacity(messages.len());
    for place in expand(&layout(row)?) {
        let message = messages.remove(&place).ok_or_else(|| damaged(row, format!("message {place} of its log is missing")))?;
        placed.push((place, message));
    }
    let log_tail = newest.log_tail.and_then(|tail| u64::try_from(tail).ok()).unwrap_or_default();
    Ok(Snapshot { meta: meta(row)?, state: ThreadState::restored(placed, channels(row)?), log_tail })
}

/// The messages at these places, by thread.
async fn messages(db: &DatabaseConnection, ranges: &[(&str, LogRange)]) -> Result<HashMap<String, HashMap<u64, Message>>, CheckpointError> {
    let mut found: HashMap<String, HashMap<u64, Message>> = HashMap::new();
    for some in ranges.chunks(RANGES_PER_SELECT) {
        let any = some.iter().fold(Condition::any(), |any, (thread, LogRange(first, last))| {
            let of_thread = checkpoint_message::Column::ThreadId.eq(*thread);
            any.add(Condition::all().add(of_thread).add(checkpoint_message::Column::Place.between(signed(*first), signed(*last))))
        });
        for row in read_checkpoints(checkpoint_message::Entity::find().filter(any).all(db).await)? {
            match serde_json::from_str(&row.message_json) {
                Ok(message) => {
                    found.entry(row.thread_id).or_default().insert(u64::try_from(row.place).unwrap_or_default(), message);
                }
                Err(error) => tracing::error!(thread_id = row.thread_id, place = row.place, %error, "a message is damaged"),
            }
        }
    }
    Ok(found)
}

/// The newest channel values of these threads.
pub(crate) async fn newest_channels(
    db: &DatabaseConnection,
    threads: &[String],
) -> Result<HashMap<String, Map<String, Value>>, StoreError> {
    let threads: Vec<&str> = threads.iter().map(String::as_str).collect();
    let rows = read(checkpoint::Model::find_by_statement(of_threads("SELECT c.*", &threads, db)).all(db).await)?;
    let channels_of = |row: &checkpoint::Model| {
        let held = channels(row).inspect_err(|error| tracing::error!(%error, "a state is left out of a search")).ok()?;
        Some((row.thread_id.clone(), held.into_iter().collect()))
    };
    Ok(rows.iter().filter_map(channels_of).collect())
}
