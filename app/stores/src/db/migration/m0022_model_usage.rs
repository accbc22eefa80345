//! Model usage per user, as rows to be summed.

use sea_orm::{ConnectionTrait, Statement, TryGetableMany};
use sea_orm_migration::prelude::*;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::db::entity::plain;
use crate::db::json::from_json;
use crate::db::statement_batch::StatementBatch;

/// Number of runs that are processed at a time.
const PAGE: u64 = 500;
/// Greatest count that is stored.
const MAX_COUNT: u64 = 1 << 40;

/// Adds a table, fills it, and adds an index of runs.
#[derive(Debug)]
pub(super) struct ModelUsage;

impl MigrationName for ModelUsage {
    fn name(&self) -> &str {
        "m0022_model_usage"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ModelUsage {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0022_model_usage.sql"))
            .await?;
        add_ended_runs(manager.get_connection()).await
    }
}

/// The part of a run's stored totals that is read here.
#[derive(Debug, Deserialize)]
struct Completion {
    token_usage_by_model: Map<String, Value>,
}

const ADD_USAGE: &str = "\
    INSERT INTO model_usage (usage_id, run_id, user_id, created_at, model, input_tokens, output_tokens, total_tokens, cache_read_tokens) \
    SELECT run_id || '/' || CAST(? AS TEXT), run_id, user_id, created_at, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT), \
        CAST(? AS BIGINT), CAST(? AS BIGINT) \
    FROM runs WHERE run_id = ? ON CONFLICT (usage_id) DO NOTHING";

/// Adds the usage rows of all ended runs.
async fn add_ended_runs(db: &impl ConnectionTrait) -> Result<(), DbErr> {
    let select = format!(
        "SELECT run_id, completion_json FROM runs WHERE run_id > $1 AND status NOT IN ('pending', 'starting', 'running') \
        ORDER BY run_id LIMIT {PAGE}"
    );
    let mut last = String::new();
    loop {
        let page = db
            .query_all_raw(Statement::from_sql_and_values(
                db.get_database_backend(),
                &select,
                [last.as_str().into()],
            ))
            .await?;
        let mut statements = StatementBatch::new(db);
        for row in &page {
            let (run, completion) = <(String, Option<String>)>::try_get_many_by_index(row)?;
            // The usage of an unreadable run is unknown.
            if let Some(Ok(completion)) = completion.as_deref().map(from_json::<Completion>) {
                for (model, counts) in &completion.token_usage_by_model {
                    let (model, [input, output, total, cached]) = (plain(model), tokens(counts));
                    statements.add(
                        ADD_USAGE,
                        [
                            model.clone().into(),
                            model.into(),
                            input,
                            output,
                            total,
                            cached,
                            run.as_str().into(),
                        ],
                    );
                }
            }
            last = run;
        }
        statements.run(db).await?;
        if page.is_empty() {
            return Ok(());
        }
    }
}

/// Returns input, output and total tokens, and the cached part of the input. In an older format the
/// counts of a model are a single number, the total.
fn tokens(counts: &Value) -> [sea_orm::Value; 4] {
    let count = |key: &str| counts.get(key).and_then(Value::as_u64);
    let capped = |count: Option<u64>| Ord::min(count.unwrap_or_default(), MAX_COUNT);
    let (input, output) = (
        capped(count("input_tokens")),
        capped(count("output_tokens")),
    );
    let stated = counts
        .as_u64()
        .or_else(|| count("total_tokens"))
        .or_else(|| count("tokens"));
    let total = match capped(stated) {
        0 => input.saturating_add(output),
        stated => stated,
    };
    [input, output, total, capped(count("cache_read_tokens"))].map(|count| {
        <i64 as TryFrom<u64>>::try_from(count)
            .unwrap_or(i64::MAX)
            .into()
    })
}

#[cfg(test)]
mod tests {
    use deerflow_core::actor_context::Owner;
    use deerflow_core::tasks::Tasks;
    use deerflow_domain::usage::UsageStore;
    use deerflow_runtime::runs::store::{RunCommit, RunCommitStore, RunCreateStore, RunEnd};
    use deerflow_runtime::runs::{RunCompletionData, RunStatus};
    use deerflow_runtime::testkit::{commit_of, end_in, new_run, object};
    use serde_json::json;

    use super::*;
    use crate::{Database, DatabaseConfig, SqlRunStore, SqlUsageStore};

    #[tokio::test]
    async fn migration_adds_usage_of_ended_runs() {
        let tasks = Tasks::new();
        let db = Database::open(&DatabaseConfig::Memory, &tasks)
            .await
            .unwrap();
        let runs = SqlRunStore::new(db.clone());
        for (id, used) in [
            (
                "r1",
                json!({"a": {"input_tokens": 2, "output_tokens": 1}, "b": 7}),
            ),
            ("r2", json!({"a": {"total_tokens": 4}})),
        ] {
            let run = runs.admit(new_run(id, id)).await.unwrap().run;
            let completion = RunCompletionData {
                token_usage_by_model: object(used),
                ..RunCompletionData::default()
            };
            let end = RunEnd {
                completion,
                ..end_in(RunStatus::Error)
            };
            let commit = RunCommit {
                end: Some(end),
                ..commit_of(&run)
            };
            runs.commit(commit.into()).await.unwrap();
        }
        runs.admit(new_run("r3", "r3")).await.unwrap();
        let usage = SqlUsageStore::new(db.clone());
        let before = usage.model_usage(&Owner::None).await.unwrap();
        assert_eq!(
            before
                .iter()
                .map(|model_usage| (model_usage.runs, model_usage.usage.total()))
                .collect::<Vec<_>>(),
            [(2, 7), (1, 7)]
        );
        db.reads()
            .execute_unprepared("DELETE FROM model_usage")
            .await
            .unwrap();
        add_ended_runs(db.reads()).await.unwrap();
        assert_eq!(usage.model_usage(&Owner::None).await.unwrap(), before);
    }
}
