//! Reads checkpoints: the rows, then the messages of all of them, each read and parsed only once.

use deerflow_core::ids::{CheckpointId, ThreadId};
use deerflow_core::state::ThreadState;
use deerflow_runtime::checkpoint::{
    CheckpointError, CheckpointMeta, HistoryQuery, Snapshot, expand,
};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DatabaseConnection, DbBackend, EntityTrait,
    QueryFilter, QueryOrder, QuerySelect, Select,
};
use serde_json::{Map, Value};

use super::lookup::{log_tail, newest_row, row_of};
use super::messages::read_messages;
use super::row::{channels, damaged, layout, meta};
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
    let messages = read_messages(db, thread, &layouts).await?;
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
