//! Size of the stored states of a thread. The values of the checkpoints are read in pages, the
//! database computes the other sizes.

use std::collections::HashMap;

use deerflow_core::ids::ThreadId;
use deerflow_core::state::Histories;
use deerflow_domain::threads::{StoredSize, ThreadStorage};
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, QueryResult, Statement, Value};
use serde_json::value::RawValue;

use crate::db::error::read;
use crate::db::json::from_json;

/// Number of checkpoints that are read at once.
const PAGE: i64 = 50;

const PAGE_OF_VALUES: &str = "SELECT checkpoint_id, channels_json, next_json, COALESCE(OCTET_LENGTH(machine_json), 0), \
    OCTET_LENGTH(layout_json) + OCTET_LENGTH(metadata_json) \
    FROM checkpoints WHERE thread_id = $1 AND checkpoint_id > $2 ORDER BY checkpoint_id LIMIT $3";
const MESSAGES: &str = "SELECT COUNT(*), COALESCE(SUM(OCTET_LENGTH(message_json)), 0) \
    FROM checkpoint_messages WHERE thread_id = $1";

/// Reads the sizes.
pub(super) async fn storage(
    db: &DatabaseConnection,
    thread: &ThreadId,
) -> Result<ThreadStorage, StoreError> {
    let (mut storage, mut after) = (ThreadStorage::default(), String::new());
    loop {
        let values = vec![
            Value::from(thread.as_str()),
            after.as_str().into(),
            PAGE.into(),
        ];
        let rows = read(query(db, PAGE_OF_VALUES, values).await)?;
        for row in &rows {
            let sizes = read(CheckpointRow::of(row))?;
            sizes.add_to(&mut storage).map_err(StoreError::Failed)?;
            after = sizes.id;
        }
        if (rows.len() as i64) < PAGE {
            break;
        }
    }
    let values = vec![Value::from(thread.as_str())];
    if let Some(row) = read(query(db, MESSAGES, values).await)?.first() {
        let messages = StoredSize {
            count: size(read(row.try_get_by_index(0))?),
            bytes: size(read(row.try_get_by_index(1))?),
        };
        if messages.count > 0 {
            storage.channels.insert("messages".to_owned(), messages);
        }
    }
    Ok(storage)
}

async fn query(
    db: &DatabaseConnection,
    sql: &str,
    values: Vec<Value>,
) -> Result<Vec<QueryResult>, DbErr> {
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    db.query_all_raw(statement).await
}

/// Columns of a checkpoint.
struct CheckpointRow {
    id: String,
    channels: String,
    next: String,
    machine: i32,
    rest: i32,
}

impl CheckpointRow {
    fn of(row: &QueryResult) -> Result<Self, DbErr> {
        Ok(Self {
            id: row.try_get_by_index(0)?,
            channels: row.try_get_by_index(1)?,
            next: row.try_get_by_index(2)?,
            machine: row.try_get_by_index(3)?,
            rest: row.try_get_by_index(4)?,
        })
    }

    fn add_to(&self, storage: &mut ThreadStorage) -> Result<(), String> {
        storage.checkpoints.count += 1;
        storage.checkpoints.bytes += size(self.rest.into());
        let channels: HashMap<String, Box<RawValue>> = from_json(&self.channels)?;
        for (name, value) in channels {
            if name == Histories::KEY {
                storage.checkpoints.bytes += value.get().len() as u64;
            } else {
                let channel = storage.channels.entry(name).or_default();
                channel.add(value.get().len());
            }
        }
        let next: Vec<Box<RawValue>> = from_json(&self.next)?;
        storage.pending_tasks.count += next.len() as u64;
        storage.pending_tasks.bytes += self.next.len() as u64 + size(self.machine.into());
        Ok(())
    }
}

fn size(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}
