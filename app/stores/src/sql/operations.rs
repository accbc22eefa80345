//! Lists of runs for operators.

use async_trait::async_trait;
use deerflow_domain::operations::{OperationsStore, RunSummary};
use deerflow_runtime::runs::store::StoreError;
use deerflow_runtime::runs::{RunStatus, StopReason};
use sea_orm::{ConnectionTrait, DbErr, QueryResult, Statement, Value};

use crate::db::clock::now_of;
use crate::db::connect::Database;
use crate::db::entity::moment;
use crate::db::error::read;

/// Operations store over SQL.
#[derive(Debug, Clone)]
pub struct SqlOperationsStore {
    db: Database,
}

impl SqlOperationsStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

#[async_trait]
impl OperationsStore for SqlOperationsStore {
    async fn runs(
        &self,
        statuses: &[RunStatus],
        limit: usize,
    ) -> Result<Vec<RunSummary>, StoreError> {
        let words: Vec<_> = statuses
            .iter()
            .map(|status| format!("'{status}'"))
            .collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let condition = format!("runs.status IN ({})", words.join(", "));
        self.select(&condition, limit).await
    }

    async fn poisoned(&self, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        let condition = format!(
            "runs.status = '{}' AND runs.stop_reason = '{}'",
            RunStatus::Error,
            StopReason::AttemptsExhausted
        );
        self.select(&condition, limit).await
    }
}

impl SqlOperationsStore {
    /// Returns up to `limit` runs that satisfy the SQL condition, newest first.
    async fn select(&self, condition: &str, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        let backend = self.db.reads().get_database_backend();
        let sql = format!(
            "SELECT run_id, thread_id, user_id, assistant_id, status, attempt, losses, stop_reason, owner, created_at, updated_at, \
                cancel_action, \
                (SELECT COUNT(*) FROM nodes WHERE nodes.node_id = runs.owner AND nodes.lease_until > {now}) AS lives, \
                (SELECT COUNT(*) FROM runs AS other WHERE other.thread_id = runs.thread_id AND other.run_id <> runs.run_id \
                    AND other.status IN ('pending', 'starting', 'running') \
                    AND (other.status <> 'pending' OR other.attempt > 1)) AS before_it \
            FROM runs WHERE {condition} ORDER BY created_at DESC, run_id DESC LIMIT $1",
            now = now_of(backend),
        );
        let limit = Value::from(i64::try_from(limit).unwrap_or(i64::MAX));
        let rows = read(
            self.db
                .reads()
                .query_all_raw(Statement::from_sql_and_values(backend, sql, [limit]))
                .await,
        )?;
        read(rows.iter().map(run_line).collect())
    }
}

fn run_line(row: &QueryResult) -> Result<RunSummary, DbErr> {
    let status: String = row.try_get("", "status")?;
    Ok(RunSummary {
        run_id: row.try_get("", "run_id")?,
        thread_id: row.try_get("", "thread_id")?,
        user_id: row.try_get("", "user_id")?,
        assistant: row.try_get("", "assistant_id")?,
        status: RunStatus::parse(&status)
            .ok_or_else(|| DbErr::Type(format!("unknown status {status:?}")))?,
        attempt: row.try_get("", "attempt")?,
        losses: row.try_get("", "losses")?,
        stop_reason: row.try_get("", "stop_reason")?,
        owner: row.try_get("", "owner")?,
        owner_is_alive: row.try_get::<i64>("", "lives")? > 0,
        is_blocked: row.try_get::<i64>("", "before_it")? > 0,
        cancel_requested: row
            .try_get::<Option<String>>("", "cancel_action")?
            .is_some(),
        created_at: moment(row.try_get("", "created_at")?),
        updated_at: moment(row.try_get("", "updated_at")?),
    })
}
