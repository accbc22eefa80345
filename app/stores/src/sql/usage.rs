//! Model usage over SQL: a row per run and model, written with the run's end, and a row per
//! auxiliary request.

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate};
use deerflow_core::actor_context::Owner;
use deerflow_core::messages::UsageMetadata;
use deerflow_domain::usage::{DailyUsage, ModelUsage, RunCounts, UsageStore, UsageWindow};
use deerflow_runtime::runs::store::{AuxiliaryUsage, RunListQuery, StoreError, UsageLedger};
use deerflow_runtime::runs::{RunCompletionData, RunRecord};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult, Statement, Value};

use crate::db::connect::Database;
use crate::db::entity::{micros, plain};
use crate::db::error::read;
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::TxError;
use crate::sql::runs::newest_of_user;

/// Usage store over SQL.
#[derive(Debug, Clone)]
pub struct SqlUsageStore {
    db: Database,
}

impl SqlUsageStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }

    /// Queries the rows of one user, or of all users: replaces `{condition}` in `sql` by the
    /// condition.
    async fn query_rows(
        &self,
        sql: &str,
        owner: &Owner,
        values: Vec<Value>,
    ) -> Result<Vec<QueryResult>, StoreError> {
        let user = owner.resolve()?;
        let condition = if user.is_some() {
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
                    sql.replace("{condition}", &condition),
                    values,
                ))
                .await,
        )
    }
}

const COUNTS: &str = "\
    SELECT COUNT(*), COALESCE(SUM(CASE WHEN status IN ('pending', 'starting', 'running') THEN 1 ELSE 0 END), 0), \
        COALESCE(SUM(CASE WHEN status IN ('error', 'timeout') THEN 1 ELSE 0 END), 0) \
    FROM runs WHERE {condition}";

/// Beginning of a query for [`ModelUsage`]. A run has one row per model.
const USAGE_COLUMNS: &str = "\
    SELECT model, COUNT(run_id), CAST(SUM(input_tokens) AS BIGINT), CAST(SUM(output_tokens) AS BIGINT), \
        CAST(SUM(total_tokens) AS BIGINT), CAST(SUM(cache_read_tokens) AS BIGINT)";

/// Condition for the rows of a user within a [`UsageWindow`].
const IN_WINDOW: &str = "WHERE created_at >= $1 AND created_at < $2 AND {condition}";

#[async_trait]
impl UsageStore for SqlUsageStore {
    async fn counts(&self, owner: &Owner) -> Result<RunCounts, StoreError> {
        let rows = self.query_rows(COUNTS, owner, vec![]).await?;
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

    async fn model_usage(&self, owner: &Owner) -> Result<Vec<ModelUsage>, StoreError> {
        let sql = format!(
            "{USAGE_COLUMNS} FROM model_usage WHERE {{condition}} GROUP BY model ORDER BY model"
        );
        read(
            self.query_rows(&sql, owner, vec![])
                .await?
                .iter()
                .map(model_usage)
                .collect(),
        )
    }

    async fn days(
        &self,
        window: &UsageWindow,
        owner: &Owner,
    ) -> Result<Vec<DailyUsage>, StoreError> {
        let day = format!(
            "(created_at + {}) / {MICROS_OF_A_DAY}",
            window.utc_offset.num_microseconds().unwrap_or_default()
        );
        let within = || {
            vec![
                Value::from(micros(window.since)),
                Value::from(micros(window.until)),
            ]
        };
        let runs =
            format!("SELECT {day} AS day, COUNT(*) FROM runs {IN_WINDOW} GROUP BY 1 ORDER BY 1");
        let usage_by_day = format!(
            "{USAGE_COLUMNS}, {day} AS day FROM model_usage {IN_WINDOW} GROUP BY day, model ORDER BY day, model"
        );
        let mut days = Vec::new();
        for row in self.query_rows(&runs, owner, within()).await? {
            days.push(read(date(&row, 0).and_then(|date| {
                Ok(DailyUsage {
                    date,
                    runs: counted(&row, 1)?,
                    model_usage: vec![],
                })
            }))?);
        }
        for row in self.query_rows(&usage_by_day, owner, within()).await? {
            let (date, model_usage) =
                read(date(&row, 6).and_then(|date| Ok((date, model_usage(&row)?))))?;
            // A day without new runs may have auxiliary requests.
            let at = days.binary_search_by_key(&date, |day| day.date);
            let at = at.unwrap_or_else(|at| {
                days.insert(
                    at,
                    DailyUsage {
                        date,
                        runs: 0,
                        model_usage: vec![],
                    },
                );
                at
            });
            days[at].model_usage.push(model_usage);
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

fn date(row: &QueryResult, column: usize) -> Result<NaiveDate, DbErr> {
    let day: i64 = row.try_get_by_index(column)?;
    let date = day
        .checked_mul(MICROS_OF_A_DAY)
        .and_then(DateTime::from_timestamp_micros);
    date.map(|date| date.date_naive())
        .ok_or_else(|| DbErr::Type(format!("{day} is not a valid day")))
}

fn counted(row: &QueryResult, column: usize) -> Result<u64, DbErr> {
    Ok(u64::try_from(row.try_get_by_index::<i64>(column)?).unwrap_or_default())
}

fn model_usage(row: &QueryResult) -> Result<ModelUsage, DbErr> {
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
    Ok(ModelUsage {
        model: row.try_get_by_index(0)?,
        runs: counted(row, 1)?,
        usage,
    })
}

#[async_trait]
impl UsageLedger for SqlUsageStore {
    async fn book(&self, costs: Vec<AuxiliaryUsage>) -> Result<(), StoreError> {
        self.db
            .writes()
            .run(costs, |tx, costs| Box::pin(book(tx, costs)))
            .await
    }
}

const INSERT_AUXILIARY: &str = "\
    INSERT INTO model_usage (usage_id, user_id, created_at, model, input_tokens, output_tokens, total_tokens, cache_read_tokens) \
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (usage_id) DO NOTHING";

async fn book(
    tx: &DatabaseTransaction,
    costs: &[AuxiliaryUsage],
) -> Result<(), TxError<StoreError>> {
    let mut statements = StatementBatch::new(tx);
    for cost in costs {
        let [input, output, total, cached] = tokens(&cost.usage);
        let (id, user, at) = (
            cost.id.as_str().into(),
            cost.user_id.clone().into(),
            micros(cost.created_at).into(),
        );
        statements.add(
            INSERT_AUXILIARY,
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
    statements.run(tx).await?;
    Ok(())
}

const ADD_USAGE: &str = "\
    INSERT INTO model_usage (usage_id, run_id, user_id, created_at, model, input_tokens, output_tokens, total_tokens, cache_read_tokens) \
    SELECT run_id || '/' || CAST(? AS TEXT), run_id, user_id, created_at, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT), \
        CAST(? AS BIGINT), CAST(? AS BIGINT) \
    FROM runs WHERE run_id = ? ON CONFLICT (usage_id) DO NOTHING";

/// Adds the usage rows of a run that ends.
pub(crate) fn add_usage(
    statements: &mut StatementBatch,
    run: &str,
    completion: &RunCompletionData,
) {
    for (model, usage) in completion.by_model() {
        let (model, [input, output, total, cached]) = (plain(model), tokens(&usage));
        statements.add(
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

/// Adds the usage of one model by a run that ends, with a prepared statement.
pub(crate) fn insert_usage(
    connection: &rusqlite::Connection,
    run: &str,
    model: &str,
    usage: &UsageMetadata,
) -> rusqlite::Result<()> {
    let (model, [input, output, total, cached]) = (plain(model), token_counts(usage));
    connection
        .prepare_cached(ADD_USAGE)?
        .execute(rusqlite::params![
            model, model, input, output, total, cached, run
        ])?;
    Ok(())
}

fn tokens(usage: &UsageMetadata) -> [Value; 4] {
    token_counts(usage).map(Value::from)
}

/// Returns input, output and total tokens, and the cached part of the input.
pub(crate) fn token_counts(usage: &UsageMetadata) -> [i64; 4] {
    let usage = usage.clone().believable();
    [
        usage.input_tokens,
        usage.output_tokens,
        usage.total(),
        usage.cache_read(),
    ]
    .map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}
