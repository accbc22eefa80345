//! Reads messages of a thread's log: short ones in groups, each long one by itself.

use std::collections::HashMap;

use deerflow_core::compute::{Size, heavy_poll};
use deerflow_core::ids::ThreadId;
use deerflow_core::messages::Message;
use deerflow_runtime::checkpoint::{CheckpointError, LogRange};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbErr, QueryResult, Statement, TryGetableMany, Value,
};

use super::ranges::{contains_position, spans, union};
use super::row::signed;
use crate::db::error::read_checkpoints;

/// Reads short messages in groups: SQLite's driver passes each row separately, which costs more than
/// reading it. The JSON of a message has no line break.
const SHORT: &str = "\
    SELECT string_agg(CAST(place AS TEXT), ',' ORDER BY place), string_agg(message_json, '\n' ORDER BY place) \
    FROM checkpoint_messages WHERE thread_id = $1 AND place BETWEEN $2 AND $3 AND octet_length(message_json) <= 65536 \
    GROUP BY place / 32";

/// One message. Long ones are read one by one, because a group of them would be in memory several times.
/// On SQLite they are blobs.
const ONE: &str = "SELECT CAST(message_json AS TEXT) FROM checkpoint_messages WHERE thread_id = $1 AND place = $2";

/// Messages by their position in the log.
type Messages = HashMap<u64, Message>;

/// Reads the messages of all layouts. If one does not exist, it and some of the others are absent from
/// the result.
pub(super) async fn read_messages(
    db: &DatabaseConnection,
    thread: &ThreadId,
    layouts: &[Vec<LogRange>],
) -> Result<Messages, CheckpointError> {
    let reader = MessageReader { db, thread };
    let named = union(layouts);
    let mut messages = Messages::new();
    for span in spans(&named) {
        reader.read_short(span, &named, &mut messages).await?;
    }
    for position in named.iter().flat_map(|range| range.0..=range.1) {
        // A missing message makes the whole read fail, so the others are not needed.
        if !messages.contains_key(&position) && !reader.read_long(position, &mut messages).await? {
            break;
        }
    }
    Ok(messages)
}

struct MessageReader<'a> {
    db: &'a DatabaseConnection,
    thread: &'a ThreadId,
}

impl MessageReader<'_> {
    async fn query(
        &self,
        sql: &str,
        places: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<QueryResult>, CheckpointError> {
        let mut values: Vec<Value> = vec![self.thread.as_str().into()];
        values.extend(places.into_iter().map(|place| signed(place).into()));
        let backend = self.db.get_database_backend();
        let statement = Statement::from_sql_and_values(backend, sql, values);
        read_checkpoints(self.db.query_all_raw(statement).await)
    }

    /// Reads the short messages of a span that are in `named`.
    async fn read_short(
        &self,
        LogRange(first, last): LogRange,
        named: &[LogRange],
        messages: &mut Messages,
    ) -> Result<(), CheckpointError> {
        let rows = self.query(SHORT, [first, last]).await?;
        let groups = rows
            .into_iter()
            .map(|row| <(String, String)>::try_get_many_by_index(&row))
            .collect::<Result<Vec<_>, _>>();
        let groups = read_checkpoints(groups.map_err(DbErr::from))?;
        heavy_poll(Size {
            items: groups.len() * 32,
            bytes: groups.iter().map(|(_, texts)| texts.len()).sum(),
        })
        .await;
        for (positions, texts) in &groups {
            self.parse_group(named, positions, texts, messages)?;
        }
        Ok(())
    }

    /// Parses a group of messages, one per line. Skips those that are not in `named`.
    fn parse_group(
        &self,
        named: &[LogRange],
        positions: &str,
        texts: &str,
        messages: &mut Messages,
    ) -> Result<(), CheckpointError> {
        let mut lines = texts.split('\n');
        for position in positions.split(',') {
            let json = lines
                .next()
                .ok_or_else(|| self.damaged(position, "it is missing in its group"))?;
            let number: u64 = position
                .parse()
                .map_err(|_| self.damaged(position, "its position is not a number"))?;
            if contains_position(named, number) {
                messages.insert(number, self.parse(number, json)?);
            }
        }
        match lines.next() {
            None => Ok(()),
            Some(_) => Err(self.damaged(positions, "its JSON contains a line break")),
        }
    }

    /// Reads one message. Returns `false` if it does not exist.
    async fn read_long(
        &self,
        position: u64,
        messages: &mut Messages,
    ) -> Result<bool, CheckpointError> {
        let mut rows = self.query(ONE, [position]).await?;
        let Some(row) = rows.pop() else {
            return Ok(false);
        };
        let json: String = read_checkpoints(row.try_get_by_index(0))?;
        drop(row);
        heavy_poll(Size::bytes(json.len())).await;
        messages.insert(position, self.parse(position, json)?);
        Ok(true)
    }

    fn parse(&self, position: u64, json: impl Into<String>) -> Result<Message, CheckpointError> {
        Message::from_stored(json)
            .map_err(|error| self.damaged(&position.to_string(), &error.to_string()))
    }

    fn damaged(&self, position: &str, reason: &str) -> CheckpointError {
        let thread = self.thread;
        let text = format!("message {position} of thread {thread} is damaged: {reason}");
        StoreError::Failed(text).into()
    }
}
