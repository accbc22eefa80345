//! The newest states of many threads at once, for lists. The database concatenates their messages;
//! they are not parsed here.

use std::collections::HashMap;

use deerflow_core::ids::ThreadId;
use deerflow_domain::threads::StoredState;
use deerflow_runtime::checkpoint::{CheckpointError, LogRange, conversation_of};
use deerflow_runtime::runs::store::StoreError;
use indexmap::IndexMap;
use sea_orm::{DatabaseConnection, DbBackend, FromQueryResult, Statement};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::row::{channels, damaged, layout, meta, signed};
use crate::db::entity::checkpoint;
use crate::db::error::{read, read_checkpoints};

/// Ranges of the log that one statement of a list reads.
const RANGES_PER_SELECT: usize = 100;

/// One index lookup per thread, however many checkpoints the threads have.
const NEWEST: &str = "\
    SELECT c.* FROM threads_meta t JOIN checkpoints c ON c.thread_id = t.thread_id \
        AND c.checkpoint_id = (SELECT MAX(i.checkpoint_id) FROM checkpoints i WHERE i.thread_id = t.thread_id) \
    WHERE t.thread_id IN";

/// Builds the query for the newest checkpoints of these threads.
fn newest(threads: &[&str], db: &DatabaseConnection) -> Statement {
    let placeholders: Vec<String> = (1..=threads.len()).map(|n| format!("${n}")).collect();
    let values = threads.iter().map(|thread| sea_orm::Value::from(*thread));
    Statement::from_sql_and_values(
        db.get_database_backend(),
        format!("{NEWEST} ({})", placeholders.join(", ")),
        values,
    )
}

/// A thread id, and the thread's newest state or the error of reading it.
pub(crate) type NewestState = (String, Result<StoredState, CheckpointError>);

/// Returns the newest states of these threads, except those without a checkpoint.
pub(crate) async fn newest_states(
    db: &DatabaseConnection,
    threads: &[ThreadId],
) -> Result<Vec<NewestState>, CheckpointError> {
    if threads.is_empty() {
        return Ok(vec![]);
    }
    let threads: Vec<&str> = threads.iter().map(|thread| thread.as_str()).collect();
    let rows = read_checkpoints(
        checkpoint::Model::find_by_statement(newest(&threads, db))
            .all(db)
            .await,
    )?;
    let read: Vec<_> = rows.iter().map(|row| (row, conversation(row))).collect();
    let mut ranges = Vec::new();
    for (row, conversation) in &read {
        // An unreadable layout is reported when its state is built.
        let layout = conversation.iter().flat_map(|(layout, _)| layout);
        ranges.extend(layout.map(|range| (row.thread_id.as_str(), *range)));
    }
    let mut parts = parts(db, &ranges).await?;
    let state = |(row, conversation): (&checkpoint::Model, _)| {
        let parts = parts.remove(&row.thread_id).unwrap_or_default();
        (row.thread_id.clone(), state(row, conversation, parts))
    };
    Ok(read.into_iter().map(state).collect())
}

/// Ranges of a conversation, and the channels.
type Conversation = Result<(Vec<LogRange>, IndexMap<String, Value>), CheckpointError>;

/// Returns the layout and the channels of a row without its histories.
fn conversation(row: &checkpoint::Model) -> Conversation {
    let mut channels = channels(row)?;
    Ok((conversation_of(layout(row)?, &mut channels), channels))
}

fn state(
    row: &checkpoint::Model,
    conversation: Conversation,
    parts: Vec<String>,
) -> Result<StoredState, CheckpointError> {
    let (layout, channels) = conversation?;
    if parts.len() != layout.len() {
        return Err(damaged(row, "messages of its log are missing".to_owned()));
    }
    let messages =
        RawValue::from_string(list_of(parts)).map_err(|error| damaged(row, error.to_string()))?;
    Ok(StoredState {
        meta: meta(row)?,
        channels: channels.into_iter().collect(),
        messages,
    })
}

/// Returns the JSON list of these insides of lists. Each is dropped once it is copied, because they
/// may need much memory.
fn list_of(parts: Vec<String>) -> String {
    let bytes: usize = parts.iter().map(|part| part.len() + 1).sum();
    let mut list = String::with_capacity(bytes + 2);
    list.push('[');
    for part in parts {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(&part);
    }
    list.push(']');
    list
}

/// Messages of one range, as the inside of a JSON list.
#[derive(FromQueryResult)]
struct Part {
    thread_id: String,
    nth: i64,
    found: i64,
    messages: Option<String>,
}

/// Returns the messages per thread, in the order of the ranges, except those of incomplete ranges.
async fn parts(
    db: &DatabaseConnection,
    ranges: &[(&str, LogRange)],
) -> Result<HashMap<String, Vec<String>>, CheckpointError> {
    let mut found: HashMap<String, Vec<String>> = HashMap::new();
    for some in ranges.chunks(RANGES_PER_SELECT) {
        let mut rows =
            read_checkpoints(Part::find_by_statement(of_ranges(some, db)).all(db).await)?;
        rows.sort_by_key(|part| part.nth);
        for part in rows {
            let request = usize::try_from(part.nth).ok().and_then(|nth| some.get(nth));
            let whole = request.is_some_and(|(_, LogRange(first, last))| {
                part.found == signed(last.saturating_sub(*first).saturating_add(1))
            });
            if let Some(messages) = part.messages.filter(|_| whole) {
                found.entry(part.thread_id).or_default().push(messages);
            }
        }
    }
    Ok(found)
}

fn of_ranges(ranges: &[(&str, LogRange)], db: &DatabaseConnection) -> Statement {
    let row = |n: usize| {
        format!(
            "(${}, ${}, ${}, ${})",
            4 * n + 1,
            4 * n + 2,
            4 * n + 3,
            4 * n + 4
        )
    };
    let rows: Vec<String> = (0..ranges.len()).map(row).collect();
    let of_range = "(SELECT m.message_json FROM checkpoint_messages m \
        WHERE m.thread_id = w.thread_id AND m.place BETWEEN w.first_place AND w.last_place ORDER BY m.place) s";
    // Postgres computes both columns in one lateral join. SQLite has no lateral joins and runs two
    // subqueries, of which the count reads only the key.
    let read = match db.get_database_backend() {
        DbBackend::Postgres => format!(
            "SELECT w.thread_id, w.nth, p.found, p.messages FROM wanted w, LATERAL \
                (SELECT COUNT(*) AS found, string_agg(s.message_json, ',') AS messages FROM {of_range}) p"
        ),
        _ => format!(
            "SELECT w.thread_id, w.nth, (SELECT COUNT(*) FROM {of_range}) AS found, \
                (SELECT string_agg(s.message_json, ',') FROM {of_range}) AS messages FROM wanted w"
        ),
    };
    let sql = format!(
        "WITH wanted (thread_id, nth, first_place, last_place) AS (VALUES {}) {read}",
        rows.join(", ")
    );
    let values = ranges
        .iter()
        .zip(0_i64..)
        .flat_map(|((thread, LogRange(first, last)), nth)| {
            [
                sea_orm::Value::from(*thread),
                nth.into(),
                signed(*first).into(),
                signed(*last).into(),
            ]
        });
    Statement::from_sql_and_values(db.get_database_backend(), sql, values)
}

/// Returns the newest channel values of these threads.
pub(crate) async fn newest_channels(
    db: &DatabaseConnection,
    threads: &[String],
) -> Result<HashMap<String, Map<String, Value>>, StoreError> {
    let threads: Vec<&str> = threads.iter().map(String::as_str).collect();
    let rows = read(
        checkpoint::Model::find_by_statement(newest(&threads, db))
            .all(db)
            .await,
    )?;
    let channels_of = |row: &checkpoint::Model| {
        let (_, values) = conversation(row)
            .inspect_err(
                |error| tracing::error!(%error, "a state is damaged, omitted from a search"),
            )
            .ok()?;
        Some((row.thread_id.clone(), values.into_iter().collect()))
    };
    Ok(rows.iter().filter_map(channels_of).collect())
}
