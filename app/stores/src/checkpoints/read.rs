//! Reading checkpoints: the rows, then the messages of all of them at once, each read and parsed a single time.

use std::collections::HashMap;

use harness::ids::{CheckpointId, ThreadId};
use harness::messages::Message;
use harness::runtime::checkpoint::{CheckpointError, CheckpointMeta, HistoryQuery, LogRange, Snapshot, expand};
use harness::runtime::runs::store::StoreError;
use harness::state::ThreadState;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DatabaseConnection, DbBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect, Select,
};
use serde_json::{Map, Value};

use super::row::{channels, damaged, layout, meta};
use super::write;
use crate::entity::{checkpoint, checkpoint_message, plain};
use crate::error::read_checkpoints;
use crate::runs::json_text;

/// Rows read at once while a metadata filter looks for more matches.
const PAGE: usize = 200;
/// Entries of a metadata filter that the database looks at.
const MOST_PUSHED: usize = 16;
/// Ranges of the log that one statement asks for.
pub(super) const RANGES_PER_SELECT: usize = 100;

pub(super) async fn get(
    db: &DatabaseConnection,
    thread: &ThreadId,
    id: Option<&CheckpointId>,
) -> Result<Option<Snapshot>, CheckpointError> {
    let mut select = newest_first(thread).limit(1);
    if let Some(id) = id {
        select = select.filter(checkpoint::Column::CheckpointId.eq(id.as_str()));
    }
    let rows = read_checkpoints(select.all(db).await)?;
    Ok(snapshots(db, thread, rows).await?.pop())
}

pub(super) async fn list(db: &DatabaseConnection, thread: &ThreadId, query: &HistoryQuery) -> Result<Vec<Snapshot>, CheckpointError> {
    let rows = matching(db, thread, query).await?;
    snapshots(db, thread, rows).await
}

pub(super) async fn list_meta(
    db: &DatabaseConnection,
    thread: &ThreadId,
    query: &HistoryQuery,
) -> Result<Vec<CheckpointMeta>, CheckpointError> {
    matching(db, thread, query).await?.iter().map(meta).collect()
}

fn newest_first(thread: &ThreadId) -> Select<checkpoint::Entity> {
    checkpoint::Entity::find().filter(checkpoint::Column::ThreadId.eq(thread.as_str())).order_by_desc(checkpoint::Column::CheckpointId)
}

/// The rows a history asks for, newest first.
async fn matching(db: &DatabaseConnection, thread: &ThreadId, query: &HistoryQuery) -> Result<Vec<checkpoint::Model>, CheckpointError> {
    let mut before = query.before.as_ref().map(ToString::to_string);
    let mut found = Vec::new();
    let mut page = query.limit;
    while found.len() < query.limit {
        let mut select = newest_first(thread).filter(may_contain(db, &query.metadata)).limit(page as u64);
        if let Some(before) = &before {
            select = select.filter(checkpoint::Column::CheckpointId.lt(before.as_str()));
        }
        let rows = read_checkpoints(select.all(db).await)?;
        let full_page = rows.len() == page;
        before = rows.last().map(|row| row.checkpoint_id.clone());
        for row in rows {
            if query.metadata.is_empty() || contains(&meta(&row)?, query) {
                found.push(row);
            }
        }
        if !full_page {
            break;
        }
        page = PAGE;
    }
    found.truncate(query.limit);
    Ok(found)
}

/// What every row passes whose metadata has all of these entries, so that the database need not send the others.
fn may_contain(db: &impl ConnectionTrait, metadata: &Map<String, Value>) -> Condition {
    let holds_text = match db.get_database_backend() {
        DbBackend::Postgres => "strpos(metadata_json, $1) > 0",
        _ => "instr(metadata_json, ?) > 0",
    };
    let held = |text: String| Expr::cust_with_values(holds_text, [text]);
    let mut all = Condition::all();
    for (key, value) in metadata.iter().take(MOST_PUSHED) {
        let column = match (key.as_str(), value) {
            // Every row shows these, whatever its metadata.
            ("parents" | "thread_id", _) => continue,
            ("source", Value::String(word)) => Some(checkpoint::Column::Source.eq(plain(word))),
            ("run_id", Value::String(run)) => Some(checkpoint::Column::RunId.eq(plain(run))),
            ("step", Value::Number(step)) => step.as_i64().map(|step| checkpoint::Column::Step.eq(step)),
            _ => None,
        };
        let key = json_text(key);
        // A plain value has one spelling. Floats have two for zero, and objects one for each order of their keys.
        let entry = match value {
            Value::Null | Value::Bool(_) | Value::String(_) => format!("{key}:{}", json_text(value)),
            Value::Number(number) if !number.is_f64() => format!("{key}:{number}"),
            _ => format!("{key}:"),
        };
        // An entry of the metadata goes before a column of the same name.
        all = all.add(Condition::any().add_option(column).add(held(entry)));
    }
    all
}

/// What clients see is what they search.
fn contains(meta: &CheckpointMeta, query: &HistoryQuery) -> bool {
    let shown = meta.public_metadata();
    query.metadata.iter().all(|(key, value)| shown.get(key) == Some(value))
}

async fn snapshots(db: &DatabaseConnection, thread: &ThreadId, rows: Vec<checkpoint::Model>) -> Result<Vec<Snapshot>, CheckpointError> {
    if rows.is_empty() {
        return Ok(vec![]);
    }
    let layouts = rows.iter().map(layout).collect::<Result<Vec<_>, _>>()?;
    let messages = messages(db, thread, &layouts).await?;
    let log_tail = log_tail(db, thread).await?;
    let mut read = Vec::with_capacity(rows.len());
    for (row, layout) in rows.iter().zip(&layouts) {
        let mut placed = Vec::new();
        for place in expand(layout) {
            match messages.get(&place) {
                Some(message) => placed.push((place, message.clone())),
                // The log only shrinks with its thread: if the thread was deleted since, there is nothing to give.
                None if log_tail == 0 => return Ok(vec![]),
                None => return Err(damaged(row, format!("message {place} of its log is missing"))),
            }
        }
        read.push(Snapshot { meta: meta(row)?, state: ThreadState::restored(placed, channels(row)?), log_tail });
    }
    Ok(read)
}

/// The messages of all layouts, by place.
async fn messages(db: &DatabaseConnection, thread: &ThreadId, layouts: &[Vec<LogRange>]) -> Result<HashMap<u64, Message>, CheckpointError> {
    let mut messages = HashMap::new();
    for ranges in union(layouts).chunks(RANGES_PER_SELECT) {
        // No more of a row than is needed, by its place: there may be thousands.
        let columns = [checkpoint_message::Column::Place, checkpoint_message::Column::MessageJson];
        let rows: Vec<(i64, String)> =
            read_checkpoints(in_ranges(thread, ranges).select_only().columns(columns).into_tuple().all(db).await)?;
        for (place, json) in rows {
            let message = Message::from_stored(&json)
                .map_err(|error| StoreError::Failed(format!("message {place} of thread {thread} is damaged: {error}")))?;
            messages.insert(u64::try_from(place).unwrap_or_default(), message);
        }
    }
    Ok(messages)
}

/// A thread's messages at these places.
pub(super) fn in_ranges(thread: &ThreadId, ranges: &[LogRange]) -> Select<checkpoint_message::Entity> {
    let any = ranges.iter().fold(Condition::any(), |any, LogRange(first, last)| {
        any.add(checkpoint_message::Column::Place.between(signed(*first), signed(*last)))
    });
    checkpoint_message::Entity::find().filter(checkpoint_message::Column::ThreadId.eq(thread.as_str())).filter(any)
}

/// The fewest ranges that cover all layouts and nothing else.
pub(super) fn union<'a>(layouts: impl IntoIterator<Item = &'a Vec<LogRange>>) -> Vec<LogRange> {
    let mut all: Vec<LogRange> = layouts.into_iter().flatten().copied().collect();
    all.sort_unstable_by_key(|range| (range.0, range.1));
    let mut union: Vec<LogRange> = Vec::new();
    for LogRange(first, last) in all {
        match union.last_mut() {
            Some(LogRange(_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => union.push(LogRange(first, last)),
        }
    }
    union
}

pub(super) async fn log_tail(db: &DatabaseConnection, thread: &ThreadId) -> Result<u64, CheckpointError> {
    read_checkpoints(write::log_tail(db, thread).await)
}

pub(super) fn signed(place: u64) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_and_touching_ranges_become_one() {
        let layouts = [vec![LogRange(1, 4), LogRange(9, 9)], vec![LogRange(5, 6)], vec![LogRange(2, 3), LogRange(8, 10)]];
        assert_eq!(union(&layouts), vec![LogRange(1, 6), LogRange(8, 10)]);
    }
}
