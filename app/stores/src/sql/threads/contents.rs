//! Content of threads that is not in their rows: newest states and last ends of runs.

use std::collections::HashMap;

use deerflow_core::ids::ThreadId;
use deerflow_domain::threads::{LastEnd, ThreadContent};
use deerflow_runtime::checkpoint::CheckpointError;
use deerflow_runtime::runs::store::StoreError;
use deerflow_runtime::runs::{RunStatus, StopReason};
use sea_orm::{ConnectionTrait, DatabaseConnection, Statement};

use crate::db::error::read;
use crate::sql::checkpoints::newest_states;

/// Maximum number of threads in one statement.
const PER_SELECT: usize = 1_000;

/// Returns the newest states and the last ends of these threads.
pub(super) async fn contents(
    db: &DatabaseConnection,
    threads: &[ThreadId],
) -> Result<HashMap<ThreadId, ThreadContent>, StoreError> {
    let mut by_thread: HashMap<ThreadId, ThreadContent> = HashMap::new();
    for some in threads.chunks(PER_SELECT) {
        for (thread, state) in newest_states(db, some).await.map_err(failed)? {
            let Ok(thread) = ThreadId::parse(thread) else {
                continue;
            };
            let content = by_thread.entry(thread).or_default();
            match state {
                Ok(state) => content.state = Some(state),
                Err(error) => content.damage = Some(error.to_string()),
            }
        }
        for (thread, end) in last_ends(db, some).await? {
            by_thread.entry(thread).or_default().last_end = Some(end);
        }
    }
    Ok(by_thread)
}

fn failed(error: CheckpointError) -> StoreError {
    match error {
        CheckpointError::Store(error) => error,
        CheckpointError::StorageFull => StoreError::NotWritable(error.to_string()),
        other => StoreError::Failed(other.to_string()),
    }
}

/// Returns the last ended run of each thread, with one index lookup per thread.
async fn last_ends(
    db: &DatabaseConnection,
    threads: &[ThreadId],
) -> Result<Vec<(ThreadId, LastEnd)>, StoreError> {
    let placeholders: Vec<String> = (1..=threads.len()).map(|n| format!("${n}")).collect();
    let sql = format!(
        "SELECT r.thread_id, r.status, r.error, r.error_name, r.stop_reason \
         FROM threads_meta t JOIN runs r ON r.run_id = (\
            SELECT n.run_id FROM runs n WHERE n.thread_id = t.thread_id AND n.status NOT IN ('pending', 'starting', 'running') \
            ORDER BY n.created_at DESC, n.run_id DESC LIMIT 1) \
         WHERE t.thread_id IN ({})",
        placeholders.join(", ")
    );
    let values = threads
        .iter()
        .map(|thread| sea_orm::Value::from(thread.as_str()));
    let rows = read(
        db.query_all_raw(Statement::from_sql_and_values(
            db.get_database_backend(),
            sql,
            values,
        ))
        .await,
    )?;
    let mut ends = Vec::with_capacity(rows.len());
    for row in rows {
        let (thread, status): (String, String) = read(
            row.try_get("", "thread_id")
                .and_then(|id| Ok((id, row.try_get("", "status")?))),
        )?;
        let text = |column: &str| read(row.try_get::<Option<String>>("", column));
        let (error, error_name, stop_reason) =
            (text("error")?, text("error_name")?, text("stop_reason")?);
        if let (Ok(thread), Some(status)) = (ThreadId::parse(thread), RunStatus::parse(&status)) {
            ends.push((
                thread,
                LastEnd {
                    status,
                    error,
                    error_name,
                    stop_reason: stop_reason.map(StopReason::from),
                },
            ));
        }
    }
    Ok(ends)
}
