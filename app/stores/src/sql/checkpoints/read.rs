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
    QueryFilter, QueryOrder, QuerySelect, Select, Statement, TryGetableMany,
};
use serde_json::{Map, Value};

use super::lookup::{log_tail, newest_row, row_of};
use super::ranges::{contains_position, spans, union};
use super::row::{channels, damaged, layout, meta, signed};
use crate::db::entity::{checkpoint, plain};
use crate::db::error::read_checkpoints;
use crate::db::json::json_text;

/// Rows read at a time while a metadata filter needs more matches.
const PAGE: usize = 200;
/// Maximum number of metadata filter entries that the database evaluates.
const MAX_PUSHED_FILTERS: usize = 16;
pub(super) async fn get(
    db: &DatabaseConnection,
    thread: &ThreadId,
    id: Option<&CheckpointId>,
) -> Result<Option<Snapshot>, CheckpointError> {
    let row = match id {
        None => newest_row(db, thread).await,
        Some(id) => row_of(db, thread, id).await,
    };
    Ok(
        snapshots(db, thread, read_checkpoints(row)?.into_iter().collect())
            .await?
            .pop(),
    )
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
    let log_tail = read_checkpoints(log_tail(db, thread).await)?;
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
