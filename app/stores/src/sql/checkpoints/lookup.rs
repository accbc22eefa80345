//! Lookups that reads and writes share: the row of one checkpoint, and the end of the message log.

use deerflow_core::ids::{CheckpointId, ThreadId};
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult, Statement, Value};

use crate::db::entity::checkpoint;

/// The limits are literals: SQLite plans a statement at each use if its limit is a bound value.
const NEWEST: &str =
    "SELECT * FROM checkpoints WHERE thread_id = $1 ORDER BY checkpoint_id DESC LIMIT 1";
const BY_ID: &str = "SELECT * FROM checkpoints WHERE thread_id = $1 AND checkpoint_id = $2";

/// Reads the row of a thread's newest checkpoint.
pub(super) async fn newest_row(
    db: &impl ConnectionTrait,
    thread: &ThreadId,
) -> Result<Option<checkpoint::Model>, DbErr> {
    query_row(db, NEWEST, vec![thread.as_str().into()]).await
}

/// Reads the row of a checkpoint.
pub(super) async fn row_of(
    db: &impl ConnectionTrait,
    thread: &ThreadId,
    id: &CheckpointId,
) -> Result<Option<checkpoint::Model>, DbErr> {
    query_row(db, BY_ID, vec![thread.as_str().into(), id.as_str().into()]).await
}

async fn query_row(
    db: &impl ConnectionTrait,
    sql: &str,
    values: Vec<Value>,
) -> Result<Option<checkpoint::Model>, DbErr> {
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    db.query_one_raw(statement)
        .await?
        .map(|row| checkpoint::Model::from_query_result(&row, ""))
        .transpose()
}

const LOG_TAIL: &str = "SELECT MAX(place) FROM checkpoint_messages WHERE thread_id = $1";

/// Returns the last position of the thread's log, 0 if it is empty.
pub(super) async fn log_tail(db: &impl ConnectionTrait, thread: &ThreadId) -> Result<u64, DbErr> {
    let values: [Value; 1] = [thread.as_str().into()];
    let row = db
        .query_one_raw(Statement::from_sql_and_values(
            db.get_database_backend(),
            LOG_TAIL,
            values,
        ))
        .await?;
    let last = row
        .map(|row| row.try_get_by_index::<Option<i64>>(0))
        .transpose()?
        .flatten();
    Ok(last.map_or(0, |place| u64::try_from(place).unwrap_or_default()))
}
