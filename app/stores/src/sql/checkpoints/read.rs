//! Reads checkpoints: the rows, then the messages of all of them, each read and parsed only once.

use std::collections::HashMap;

use deerflow_core::compute::{Size, heavy_poll};
use deerflow_core::ids::{CheckpointId, ThreadId};
use deerflow_core::messages::Message;
use deerflow_core::state::ThreadState;
use deerflow_runtime::checkpoint::{
    CheckpointError, CheckpointMeta, HistoryQuery, LogRange, Snapshot, expand,
};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DatabaseConnection, DbBackend, DbErr, EntityTrait,
    FromQueryResult, QueryFilter, QueryOrder, QuerySelect, Select, Statement, TryGetableMany,
};
use serde_json::{Map, Value};

use super::row::{channels, damaged, layout, meta};
use super::write;
use crate::db::entity::{checkpoint, plain};
use crate::db::error::read_checkpoints;
use crate::sql::runs::json_text;

/// Rows read at a time while a metadata filter needs more matches.
const PAGE: usize = 200;
/// Maximum number of metadata filter entries that the database evaluates.
const MAX_PUSHED_FILTERS: usize = 16;
/// Ranges of the log that one statement of a list reads.
pub(super) const RANGES_PER_SELECT: usize = 100;
/// Maximum gap between two ranges that is read as part of one span, which is cheaper than another
/// statement.
const MAX_GAP: u64 = 32;
/// Maximum number of statements of one read of messages.
const MAX_SPANS: usize = 16;

/// The limits are literals: SQLite plans a statement at each use if its limit is a bound value.
const NEWEST: &str =
    "SELECT * FROM checkpoints WHERE thread_id = $1 ORDER BY checkpoint_id DESC LIMIT 1";
const BY_ID: &str = "SELECT * FROM checkpoints WHERE thread_id = $1 AND checkpoint_id = $2";

pub(super) async fn get(
    db: &DatabaseConnection,
    thread: &ThreadId,
    id: Option<&CheckpointId>,
) -> Result<Option<Snapshot>, CheckpointError> {
    let row = match id {
        None => newest_row(db, thread).await,
        Some(id) => row_of(db, BY_ID, vec![thread.as_str().into(), id.as_str().into()]).await,
    };
    Ok(
        snapshots(db, thread, read_checkpoints(row)?.into_iter().collect())
            .await?
            .pop(),
    )
}

/// Reads the row of a thread's newest checkpoint.
pub(super) async fn newest_row(
    db: &impl ConnectionTrait,
    thread: &ThreadId,
) -> Result<Option<checkpoint::Model>, DbErr> {
    row_of(db, NEWEST, vec![thread.as_str().into()]).await
}

async fn row_of(
    db: &impl ConnectionTrait,
    sql: &str,
    values: Vec<sea_orm::Value>,
) -> Result<Option<checkpoint::Model>, DbErr> {
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    db.query_one_raw(statement)
        .await?
        .map(|row| checkpoint::Model::from_query_result(&row, ""))
        .transpose()
}

pub(super) async fn list(
    db: &DatabaseConnection,
    thread: &ThreadId,
    query: &HistoryQuery,
) -> Result<Vec<Snapshot>, CheckpointError> {
    let rows = matching(db, thread, query).await?;
    snapshots(db, thread, rows).await
}

pub(super) async fn list_meta(
    db: &DatabaseConnection,
    thread: &ThreadId,
    query: &HistoryQuery,
) -> Result<Vec<CheckpointMeta>, CheckpointError> {
    matching(db, thread, query)
        .await?
        .iter()
        .map(meta)
        .collect()
}

fn newest_first(thread: &ThreadId) -> Select<checkpoint::Entity> {
    checkpoint::Entity::find()
        .filter(checkpoint::Column::ThreadId.eq(thread.as_str()))
        .order_by_desc(checkpoint::Column::CheckpointId)
}

/// Returns the rows that match a history query, newest first.
async fn matching(
    db: &DatabaseConnection,
    thread: &ThreadId,
    query: &HistoryQuery,
) -> Result<Vec<checkpoint::Model>, CheckpointError> {
    let mut before = query.before.as_ref().map(ToString::to_string);
    let mut matches = Vec::new();
    let mut page = query.limit;
    while matches.len() < query.limit {
        let mut select = newest_first(thread)
            .filter(may_contain(db, &query.metadata))
            .limit(page as u64);
        if let Some(before) = &before {
            select = select.filter(checkpoint::Column::CheckpointId.lt(before.as_str()));
        }
        let rows = read_checkpoints(select.all(db).await)?;
        let full_page = rows.len() == page;
        before = rows.last().map(|row| row.checkpoint_id.clone());
        for row in rows {
            if query.metadata.is_empty() || contains(&meta(&row)?, query) {
                matches.push(row);
            }
        }
        if !full_page {
            break;
        }
        page = PAGE;
    }
    matches.truncate(query.limit);
    Ok(matches)
}

/// Builds a condition that every matching row passes, so that the database need not send the
/// others.
fn may_contain(db: &impl ConnectionTrait, metadata: &Map<String, Value>) -> Condition {
    let holds_text = match db.get_database_backend() {
        DbBackend::Postgres => "strpos(metadata_json, $1) > 0",
        _ => "instr(metadata_json, ?) > 0",
    };
    let contains_text = |text: String| Expr::cust_with_values(holds_text, [text]);
    let mut all = Condition::all();
    for (key, value) in metadata.iter().take(MAX_PUSHED_FILTERS) {
        let column = match (key.as_str(), value) {
            // These values are the same in all rows of a thread, so the database need not compare
            // them.
            ("parents" | "thread_id", _) => continue,
            ("source", Value::String(word)) => Some(checkpoint::Column::Source.eq(plain(word))),
            ("run_id", Value::String(run)) => Some(checkpoint::Column::RunId.eq(plain(run))),
            ("step", Value::Number(step)) => {
                step.as_i64().map(|step| checkpoint::Column::Step.eq(step))
            }
            _ => None,
        };
        let key = json_text(key);
        // A scalar has a single JSON spelling. Floats have two for zero, and objects one for each
        // order of their keys.
        let entry = match value {
            Value::Null | Value::Bool(_) | Value::String(_) => {
                format!("{key}:{}", json_text(value))
            }
            Value::Number(number) if !number.is_f64() => format!("{key}:{number}"),
            _ => format!("{key}:"),
        };
        // A metadata entry takes precedence over a column of the same name.
        all = all.add(
            Condition::any()
                .add_option(column)
                .add(contains_text(entry)),
        );
    }
    all
}

/// Compares with the metadata as clients see it.
fn contains(meta: &CheckpointMeta, query: &HistoryQuery) -> bool {
    let shown = meta.public_metadata();
    query
        .metadata
        .iter()
        .all(|(key, value)| shown.get(key) == Some(value))
}

async fn snapshots(
    db: &DatabaseConnection,
    thread: &ThreadId,
    rows: Vec<checkpoint::Model>,
) -> Result<Vec<Snapshot>, CheckpointError> {
    if rows.is_empty() {
        return Ok(vec![]);
    }
    let layouts = rows.iter().map(layout).collect::<Result<Vec<_>, _>>()?;
    let messages = messages(db, thread, &layouts).await?;
    let log_tail = log_tail(db, thread).await?;
    let mut read = Vec::with_capacity(rows.len());
    for (row, layout) in rows.iter().zip(&layouts) {
        let mut placed = Vec::new();
        for position in expand(layout) {
            match messages.get(&position) {
                Some(message) => placed.push((position, message.clone())),
                // Log entries are only deleted with their thread: the thread was deleted in the
                // meantime.
                None if log_tail == 0 => return Ok(vec![]),
                None => {
                    return Err(damaged(
                        row,
                        format!("message {position} of its log is missing"),
                    ));
                }
            }
        }
        read.push(Snapshot {
            meta: meta(row)?,
            state: ThreadState::restored(placed, channels(row)?),
            log_tail,
        });
    }
    Ok(read)
}

/// Reads messages in groups: SQLite's driver passes each row separately, which costs more than
/// reading it. The JSON of a message has no line break, and a group of the largest messages stays
/// below the size limit of a text value.
const MESSAGES: &str = "\
    SELECT string_agg(CAST(place AS TEXT), ',' ORDER BY place), string_agg(message_json, '\n' ORDER BY place) \
    FROM checkpoint_messages WHERE thread_id = $1 AND place BETWEEN $2 AND $3 GROUP BY place / 32";

/// Reads the messages of all layouts, by their position in the log.
async fn messages(
    db: &DatabaseConnection,
    thread: &ThreadId,
    layouts: &[Vec<LogRange>],
) -> Result<HashMap<u64, Message>, CheckpointError> {
    let named = union(layouts);
    let mut messages = HashMap::new();
    for LogRange(first, last) in spans(&named) {
        let values: [sea_orm::Value; 3] = [
            thread.as_str().into(),
            signed(first).into(),
            signed(last).into(),
        ];
        let statement = Statement::from_sql_and_values(db.get_database_backend(), MESSAGES, values);
        let rows = read_checkpoints(db.query_all_raw(statement).await)?;
        let groups = rows
            .iter()
            .map(<(String, String)>::try_get_many_by_index)
            .collect::<Result<Vec<_>, _>>();
        let groups = read_checkpoints(groups.map_err(DbErr::from))?;
        heavy_poll(Size {
            items: groups.len() * 32,
            bytes: groups.iter().map(|(_, texts)| texts.len()).sum(),
        })
        .await;
        for (positions, texts) in &groups {
            read_group(thread, &named, positions, texts, &mut messages)?;
        }
    }
    Ok(messages)
}

/// Parses a group of messages, one per line. Skips those that are not in `named`.
fn read_group(
    thread: &ThreadId,
    named: &[LogRange],
    positions: &str,
    texts: &str,
    messages: &mut HashMap<u64, Message>,
) -> Result<(), CheckpointError> {
    let damaged = |position: &str, reason: String| {
        StoreError::Failed(format!(
            "message {position} of thread {thread} is damaged: {reason}"
        ))
    };
    let mut lines = texts.split('\n');
    for position in positions.split(',') {
        let json = lines
            .next()
            .ok_or_else(|| damaged(position, "it is missing in its group".to_owned()))?;
        let number: u64 = position
            .parse()
            .map_err(|_| damaged(position, "its position is not a number".to_owned()))?;
        if contains_position(named, number) {
            messages.insert(
                number,
                Message::from_stored(json).map_err(|error| damaged(position, error.to_string()))?,
            );
        }
    }
    match lines.next() {
        None => Ok(()),
        Some(_) => Err(damaged(positions, "its JSON contains a line break".to_owned()).into()),
    }
}

/// Returns `true` if sorted, disjoint ranges contain a position.
fn contains_position(ranges: &[LogRange], position: u64) -> bool {
    let after = ranges.partition_point(|LogRange(first, _)| *first <= position);
    after > 0 && position <= ranges[after - 1].1
}

/// Merges sorted, disjoint ranges into at most [`MAX_SPANS`] spans of the log, each read by one
/// statement. Always reads over gaps of up to [`MAX_GAP`] positions, and over wider ones only as
/// far as the number of spans requires.
fn spans(ranges: &[LogRange]) -> Vec<LogRange> {
    let mut gap = MAX_GAP;
    loop {
        let spans = merged(ranges, gap);
        if spans.len() <= MAX_SPANS {
            return spans;
        }
        gap = gap.saturating_mul(4);
    }
}

/// Returns the smallest set of ranges that covers exactly the positions of all layouts.
pub(super) fn union<'a>(layouts: impl IntoIterator<Item = &'a Vec<LogRange>>) -> Vec<LogRange> {
    let mut all: Vec<LogRange> = layouts.into_iter().flatten().copied().collect();
    all.sort_unstable_by_key(|range| (range.0, range.1));
    merged(&all, 0)
}

/// Merges sorted ranges that overlap, touch, or are separated by at most `gap` positions.
fn merged(sorted: &[LogRange], gap: u64) -> Vec<LogRange> {
    let mut merged: Vec<LogRange> = Vec::new();
    for &LogRange(first, last) in sorted {
        match merged.last_mut() {
            Some(LogRange(_, end)) if first <= end.saturating_add(gap).saturating_add(1) => {
                *end = last.max(*end)
            }
            _ => merged.push(LogRange(first, last)),
        }
    }
    merged
}

pub(super) async fn log_tail(
    db: &DatabaseConnection,
    thread: &ThreadId,
) -> Result<u64, CheckpointError> {
    read_checkpoints(write::log_tail(db, thread).await)
}

pub(super) fn signed(position: u64) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn union_merges_overlapping_and_touching_ranges() {
        let layouts = [
            vec![LogRange(1, 4), LogRange(9, 9)],
            vec![LogRange(5, 6)],
            vec![LogRange(2, 3), LogRange(8, 10)],
        ];
        assert_eq!(union(&layouts), vec![LogRange(1, 6), LogRange(8, 10)]);
    }

    #[test]
    fn fragments_are_read_as_one_span() {
        // Every third position belongs to a message that was replaced.
        let ranges: Vec<LogRange> = (0..1_000).map(|n| LogRange(3 * n + 2, 3 * n + 3)).collect();
        assert_eq!(spans(&ranges), vec![LogRange(2, 3_000)]);
        assert!(contains_position(&ranges, 2) && contains_position(&ranges, 3_000));
        assert!(
            !contains_position(&ranges, 1)
                && !contains_position(&ranges, 4)
                && !contains_position(&ranges, 3_001)
        );
    }

    #[test]
    fn spans_skip_wide_gaps_and_are_limited() {
        let apart = [
            LogRange(1, 10),
            LogRange(1_000, 1_010),
            LogRange(1_020, 1_030),
        ];
        assert_eq!(spans(&apart), vec![LogRange(1, 10), LogRange(1_000, 1_030)]);
        let scattered: Vec<LogRange> = (0..500).map(|n| LogRange(1_000 * n, 1_000 * n)).collect();
        assert!(spans(&scattered).len() <= MAX_SPANS);
        assert_eq!(spans(&[]), vec![]);
    }
}
