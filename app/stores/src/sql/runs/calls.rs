//! Ledger of tool calls: a row is a call that started, with a result once it has ended.

use async_trait::async_trait;
use deerflow_core::ids::RunId;
use deerflow_runtime::runs::store::{CallEntry, CallProgress, RunCommit, StoreError, ToolLedger};
use sea_orm::{ConnectionTrait, DbErr, Statement};

use super::SqlRunStore;
use crate::db::error::read;
use crate::db::json::{from_json, json_text};
use crate::db::statement_batch::StatementBatch;

pub(super) const WRITE: &str = "INSERT INTO tool_calls (run_id, call_key, result_json) VALUES (?, ?, ?) \
    ON CONFLICT (run_id, call_key) DO UPDATE SET result_json = excluded.result_json";

pub(super) const FORGET: &str = "DELETE FROM tool_calls WHERE run_id = ?";

const READ: &str = "SELECT result_json FROM tool_calls WHERE run_id = $1 AND call_key = $2";

/// Adds the call entries of a commit. A run without such calls needs no statement.
pub(super) fn add_calls(statements: &mut StatementBatch, commit: &RunCommit) {
    let run = commit.run_id.as_str();
    if commit.end.as_ref().is_some_and(|end| end.forget_calls) {
        return statements.add(FORGET, [run.into()]);
    }
    for CallEntry { key, progress } in &commit.calls {
        let result = result_text(progress);
        statements.add(WRITE, [run.into(), key.as_str().into(), result.into()]);
    }
}

/// Returns the stored result of a call; `None` for one that started.
pub(super) fn result_text(progress: &CallProgress) -> Option<String> {
    match progress {
        CallProgress::Started => None,
        CallProgress::Done(result) => Some(json_text(result)),
    }
}

#[async_trait]
impl ToolLedger for SqlRunStore {
    async fn progress(&self, run: &RunId, key: &str) -> Result<Option<CallProgress>, StoreError> {
        let db = self.db.reads();
        let statement = Statement::from_sql_and_values(
            db.get_database_backend(),
            READ,
            [run.as_str().into(), key.into()],
        );
        let Some(row) = read(db.query_one_raw(statement).await)? else {
            return Ok(None);
        };
        let damaged = |reason| DbErr::Type(format!("a call of run {run} is damaged: {reason}"));
        Ok(Some(
            match read(row.try_get_by_index::<Option<String>>(0))? {
                None => CallProgress::Started,
                Some(text) => CallProgress::Done(read(from_json(&text).map_err(damaged))?),
            },
        ))
    }
}
