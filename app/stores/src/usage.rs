//! What models were used for: a row per run and model, written with the run's end, and one per question beside runs.

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate};
use deerflow_domain::usage::{Day, RunCounts, Spent, UsageStore, Window};
use harness::messages::UsageMetadata;
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{AsideCost, AsideLedger, RunListQuery, StoreError};
use harness::runtime::runs::{RunCompletionData, RunRecord};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, ExprTrait, QueryFilter,
    QueryOrder, QueryResult, QuerySelect, Statement, Value,
};

use crate::connect::Database;
use crate::entity::{micros, plain, run};
use crate::error::read;
use crate::runs::{from_json, is_active, newest_of_user};
use crate::script::Script;
use crate::tx::TxError;

/// Sums over SQL.
#[derive(Debug, Clone)]
pub struct SqlUsageStore {
    db: Database,
}

impl SqlUsageStore {
    /// A view of `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }

    /// Rows of one user, or of all, whom the condition in `sql` names.
    async fn ask(
        &self,
        sql: &str,
        owner: &Owner,
        values: Vec<Value>,
    ) -> Result<Vec<QueryResult>, StoreError> {
        let user = owner.resolve()?;
        let whose = if user.is_some() {
            format!("user_id = ${}", values.len() + 1)
        } else {
            "TRUE".to_owned()
        };
        let values = values.into_iter().chain(user.map(Value::from));
        let backend = self.db.reads().get_database_backend();
        read(
            self.db
                .reads()
                .query_all_raw(Statement::from_sql_and_values(
                    backend,
                    sql.replace("{whose}", &whose),
                    values,
                ))
                .await,
        )
    }
}

const COUNTS: &str = "\
    SELECT COUNT(*), COALESCE(SUM(CASE WHEN status IN ('pending', 'starting', 'running') THEN 1 ELSE 0 END), 0), \
        COALESCE(SUM(CASE WHEN status IN ('error', 'timeout') THEN 1 ELSE 0 END), 0) \
    FROM runs WHERE {whose}";

/// The columns that make a [`Spent`]; a run has one row per model.
const SPENT: &str = "\
    SELECT model, COUNT(run_id), CAST(SUM(input_tokens) AS BIGINT), CAST(SUM(output_tokens) AS BIGINT), \
        CAST(SUM(total_tokens) AS BIGINT), CAST(SUM(cache_read_tokens) AS BIGINT)";

/// The rows of a user in a [`Window`].
const WITHIN: &str = "WHERE created_at >= $1 AND created_at < $2 AND {whose}";

#[async_trait]
impl UsageStore for SqlUsageStore {
    async fn counts(&self, owner: &Owner) -> Result<RunCounts, StoreError> {
        let rows = self.ask(COUNTS, owner, vec![]).await?;
        let Some(row) = rows.first() else {
            return Ok(RunCounts::default());
        };
        read(counted(row, 0).and_then(|all| {
            Ok(RunCounts {
                all,
                active: counted(row, 1)?,
                failed: counted(row, 2)?,
            })
        }))
    }

    async fn spent(&self, owner: &Owner) -> Result<Vec<Spent>, StoreError> {
        let sql = format!("{SPENT} FROM model_usage WHERE {{whose}} GROUP BY model ORDER BY model");
        read(
            self.ask(&sql, owner, vec![])
                .await?
                .iter()
                .map(spent)
                .collect(),
        )
    }

    async fn days(&self, window: &Window, owner: &Owner) -> Result<Vec<Day>, StoreError> {
        let day = format!(
            "(created_at + {}) / {MICROS_OF_A_DAY}",
            window.ahead.num_microseconds().unwrap_or_default()
        );
        let within = || {
            vec![
                Value::from(micros(window.since)),
                Value::from(micros(window.until)),
            ]
        };
        let runs =
            format!("SELECT {day} AS day, COUNT(*) FROM runs {WITHIN} GROUP BY 1 ORDER BY 1");
        let spent_by_day = format!(
            "{SPENT}, {day} AS day FROM model_usage {WITHIN} GROUP BY day, model ORDER BY day, model"
        );
        let mut days = Vec::new();
        for row in self.ask(&runs, owner, within()).await? {
            days.push(read(date(&row, 0).and_then(|date| {
                Ok(Day {
                    date,
                    runs: counted(&row, 1)?,
                    spent: vec![],
                })
            }))?);
        }
        for row in self.ask(&spent_by_day, owner, within()).await? {
            let (date, spent) = read(date(&row, 6).and_then(|date| Ok((date, spent(&row)?))))?;
            // A day on which no run was accepted may have questions beside runs.
            let at = days.binary_search_by_key(&date, |day| day.date);
            let at = at.unwrap_or_else(|at| {
                days.insert(
                    at,
                    Day {
                        date,
                        runs: 0,
                        spent: vec![],
                    },
                );
                at
            });
            days[at].spent.push(spent);
        }
        Ok(days)
    }

    async fn runs(
        &self,
        query: &RunListQuery,
        owner: &Owner,
    ) -> Result<Vec<RunRecord>, StoreError> {
        newest_of_user(&self.db, query, owner).await
    }
}

const MICROS_OF_A_DAY: i64 = 86_400_000_000;
/// Runs whose rows are added at a time.
const PAGE: u64 = 500;

fn date(row: &QueryResult, column: usize) -> Result<NaiveDate, DbErr> {
    let day: i64 = row.try_get_by_index(column)?;
    let date = day
        .checked_mul(MICROS_OF_A_DAY)
        .and_then(DateTime::from_timestamp_micros);
    date.map(|date| date.date_naive())
        .ok_or_else(|| DbErr::Type(format!("{day} is no day")))
}

fn counted(row: &QueryResult, column: usize) -> Result<u64, DbErr> {
    Ok(u64::try_from(row.try_get_by_index::<i64>(column)?).unwrap_or_default())
}

fn spent(row: &QueryResult) -> Result<Spent, DbErr> {
    let cached = counted(row, 5)?;
    let usage = UsageMetadata {
        input_tokens: counted(row, 2)?,
        output_tokens: counted(row, 3)?,
        total_tokens: counted(row, 4)?,
        input_token_details: [(UsageMetadata::CACHE_READ.to_owned(), cached.into())]
            .into_iter()
            .collect(),
        ..UsageMetadata::default()
    };
    Ok(Spent {
        model: row.try_get_by_index(0)?,
        runs: counted(row, 1)?,
        usage,
    })
}

#[async_trait]
impl AsideLedger for SqlUsageStore {
    async fn book(&self, costs: Vec<AsideCost>) -> Result<(), StoreError> {
        self.db
            .writes()
            .run(costs, |tx, costs| Box::pin(book(tx, costs)))
            .await
    }
}

const BOOK: &str = "\
    INSERT INTO model_usage (usage_id, user_id, created_at, model, input_tokens, output_tokens, total_tokens, cache_read_tokens) \
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (usage_id) DO NOTHING";

async fn book(tx: &DatabaseTransaction, costs: &[AsideCost]) -> Result<(), TxError<StoreError>> {
    let mut script = Script::new(tx);
    for cost in costs {
        let [input, output, total, cached] = tokens(&cost.usage);
        let (id, user, at) = (
            cost.id.as_str().into(),
            cost.user_id.clone().into(),
            micros(cost.created_at).into(),
        );
        script.add(
            BOOK,
            [
                id,
                user,
                at,
                plain(&cost.model).into(),
                input,
                output,
                total,
                cached,
            ],
        );
    }
    script.run(tx).await?;
    Ok(())
}

const ADD_USAGE: &str = "\
    INSERT INTO model_usage (usage_id, run_id, user_id, created_at, model, input_tokens, output_tokens, total_tokens, cache_read_tokens) \
    SELECT run_id || '/' || CAST(? AS TEXT), run_id, user_id, created_at, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT), \
        CAST(? AS BIGINT), CAST(? AS BIGINT) \
    FROM runs WHERE run_id = ? ON CONFLICT (usage_id) DO NOTHING";

/// Adds what a run that ends was spent on.
pub(crate) fn add_usage(script: &mut Script, run: &str, completion: &RunCompletionData) {
    for (model, usage) in completion.by_model() {
        let (model, [input, output, total, cached]) = (plain(model), tokens(&usage));
        script.add(
            ADD_USAGE,
            [
                model.clone().into(),
                model.into(),
                input,
                output,
                total,
                cached,
                run.into(),
            ],
        );
    }
}

/// Adds what all runs that are over were spent on, for a database that kept no such rows.
pub(crate) async fn add_all_usage(db: &impl ConnectionTrait) -> Result<(), DbErr> {
    let mut last = String::new();
    loop {
        let page: Vec<(String, Option<String>)> = run::Entity::find()
            .select_only()
            .columns([run::Column::RunId, run::Column::CompletionJson])
            .filter(run::Column::RunId.gt(last.as_str()))
            .filter(is_active().not())
            .order_by_asc(run::Column::RunId)
            .limit(PAGE)
            .into_tuple()
            .all(db)
            .await?;
        let mut script = Script::new(db);
        for (run, completion) in &page {
            // Of a run that cannot be read nobody knows what it was spent on.
            if let Some(Ok(completion)) = completion.as_deref().map(from_json) {
                add_usage(&mut script, run, &completion);
            }
        }
        script.run(db).await?;
        match page.into_iter().next_back() {
            Some((run, _)) => last = run,
            None => return Ok(()),
        }
    }
}

/// Input, output, both, and the part of the input that was cached.
fn tokens(usage: &UsageMetadata) -> [Value; 4] {
    let usage = usage.clone().believable();
    [
        usage.input_tokens,
        usage.output_tokens,
        usage.total(),
        usage.cache_read(),
    ]
    .map(|count| i64::try_from(count).unwrap_or(i64::MAX).into())
}

#[cfg(test)]
mod tests {
    use harness::runtime::runs::RunStatus;
    use harness::runtime::runs::store::{RunCommit, RunCommitStore, RunCreateStore, RunEnd};
    use harness::runtime::tasks::Tasks;
    use harness::testkit::{commit_of, end_in, new_run, object};
    use serde_json::json;

    use super::*;
    use crate::{DatabaseConfig, SqlRunStore};

    #[tokio::test]
    async fn a_database_from_before_these_rows_gets_them_from_its_runs() {
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
            runs.commit(RunCommit {
                end: Some(end),
                ..commit_of(&run)
            })
            .await
            .unwrap();
        }
        runs.admit(new_run("r3", "r3")).await.unwrap();
        let usage = SqlUsageStore::new(db.clone());
        let before = usage.spent(&Owner::None).await.unwrap();
        assert_eq!(
            before
                .iter()
                .map(|spent| (spent.runs, spent.usage.total()))
                .collect::<Vec<_>>(),
            [(2, 7), (1, 7)]
        );
        db.reads()
            .execute_unprepared("DELETE FROM model_usage")
            .await
            .unwrap();
        add_all_usage(db.reads()).await.unwrap();
        assert_eq!(usage.spent(&Owner::None).await.unwrap(), before);
    }
}
