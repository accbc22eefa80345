//! Webhook outbox over SQL: a call is written with the run's end that it reports, and stored until
//! it is delivered or expires as a dead letter.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::ids::RunId;
use deerflow_runtime::runs::RunRecord;
use deerflow_runtime::runs::store::{
    StoreError, WebhookCall, WebhookDelivery, WebhookOutbox, WebhookOutboxEntry,
};
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ColumnTrait, DatabaseConnection, DatabaseTransaction, DbErr, EntityTrait, ExprTrait,
    IntoActiveModel, QueryFilter, QueryOrder, QuerySelect,
};

use crate::db::connect::Database;
use crate::db::entity::{micros, moment, plain, run, webhook};
use crate::db::error::read;
use crate::db::json::{from_json, json_text};
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::{TxError, TxFuture};
use crate::db::writes::Writes;
use crate::sql::runs::{load_one, record};

/// Webhook outbox over SQL.
#[derive(Debug, Clone)]
pub struct SqlWebhookOutbox {
    reads: DatabaseConnection,
    writes: Writes,
}

impl SqlWebhookOutbox {
    /// Creates an outbox over `db`.
    pub fn new(db: &Database) -> Self {
        Self {
            reads: db.reads().clone(),
            writes: db.writes().clone(),
        }
    }
}

/// Inserts the webhook call of an end that was just written.
pub(crate) async fn insert_call(
    tx: &DatabaseTransaction,
    ended: &str,
    at: i64,
    call: &WebhookCall,
) -> Result<(), DbErr> {
    let row = run::Entity::find_by_id(ended).one(tx).await?;
    let Some(row) = load_one(tx, row).await? else {
        return Ok(());
    };
    let row = webhook::Model {
        run_id: ended.to_owned(),
        run_json: json_text(&record(row)?),
        call_json: json_text(call),
        signature_key: None,
        ended_at: at,
        tries: 0,
        due_at: Some(at),
        died_at: None,
        last_error: None,
    };
    let insert = webhook::Entity::insert(row.into_active_model())
        .on_conflict(OnConflict::new().do_nothing().to_owned());
    insert.exec_without_returning(tx).await?;
    Ok(())
}

#[async_trait]
impl WebhookOutbox for SqlWebhookOutbox {
    async fn due(
        &self,
        now: DateTime<Utc>,
        leased_until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<WebhookDelivery>, StoreError> {
        let is_due = webhook::Column::DueAt.lte(micros(now));
        // Avoids a write if there is none.
        if read(
            webhook::Entity::find()
                .filter(is_due)
                .limit(1)
                .one(&self.reads)
                .await,
        )?
        .is_none()
        {
            return Ok(Vec::new());
        }
        self.writes
            .release((micros(now), micros(leased_until), limit as u64), lease)
            .await
    }

    async fn delivered(&self, run: &RunId) -> Result<(), StoreError> {
        self.writes
            .release(run.clone(), |tx, run| Box::pin(forget(tx, run)))
            .await
    }

    async fn failed(
        &self,
        runs: &[RunId],
        error: &str,
        again_at: Option<DateTime<Utc>>,
        at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let failure = DeliveryFailure {
            runs: runs.to_vec(),
            error: plain(error),
            again: again_at.map(micros),
            at: micros(at),
        };
        self.writes.release(failure, record_failure).await
    }

    async fn put_back(&self, runs: &[RunId], at: DateTime<Utc>) -> Result<(), StoreError> {
        if runs.is_empty() {
            return Ok(());
        }
        self.writes
            .release((runs.to_vec(), micros(at)), put_back)
            .await
    }

    async fn letters(
        &self,
        only_dead: bool,
        limit: usize,
    ) -> Result<Vec<WebhookOutboxEntry>, StoreError> {
        let mut select = webhook::Entity::find();
        if only_dead {
            select = select.filter(webhook::Column::DueAt.is_null());
        }
        let select = select
            .order_by_desc(webhook::Column::EndedAt)
            .order_by_desc(webhook::Column::RunId)
            .limit(limit as u64);
        Ok(read(select.all(&self.reads).await)?
            .into_iter()
            .filter_map(read_entry)
            .collect())
    }

    async fn resend(&self, run: &RunId, at: DateTime<Utc>) -> Result<bool, StoreError> {
        self.writes.release((run.clone(), micros(at)), resend).await
    }

    async fn sweep(&self, before: DateTime<Utc>, limit: usize) -> Result<usize, StoreError> {
        let over = webhook::Entity::find().filter(webhook::Column::DiedAt.lte(micros(before)));
        // Avoids a write if there is none.
        if read(over.limit(1).one(&self.reads).await)?.is_none() {
            return Ok(0);
        }
        self.writes
            .release(
                (micros(before), i64::try_from(limit).unwrap_or(i64::MAX)),
                sweep,
            )
            .await
    }
}

/// Failed deliveries.
struct DeliveryFailure {
    runs: Vec<RunId>,
    error: String,
    again: Option<i64>,
    at: i64,
}

/// Returns `None` for an unreadable entry, so that it does not hide the others.
fn read_entry(row: webhook::Model) -> Option<WebhookOutboxEntry> {
    let run_id = row.run_id.clone();
    let read = || -> Result<WebhookOutboxEntry, String> {
        Ok(WebhookOutboxEntry {
            run_id: RunId::parse(row.run_id).map_err(|error| error.to_string())?,
            url: from_json::<WebhookCall>(&row.call_json)?.url,
            ended_at: moment(row.ended_at),
            tries: u32::try_from(row.tries).map_err(|error| error.to_string())?,
            due_at: row.due_at.map(moment),
            died_at: row.died_at.map(moment),
            last_error: row.last_error,
        })
    };
    read()
        .inspect_err(|error| tracing::error!(run_id, error, "a webhook call cannot be read"))
        .ok()
}

fn put_back<'a>(
    tx: &'a DatabaseTransaction,
    (runs, at): &'a (Vec<RunId>, i64),
) -> TxFuture<'a, ()> {
    Box::pin(async move {
        webhook::Entity::update_many()
            .col_expr(webhook::Column::DueAt, Expr::value(*at))
            .filter(webhook::Column::RunId.is_in(runs.iter().map(RunId::as_str)))
            .filter(webhook::Column::DueAt.is_not_null())
            .exec(tx)
            .await?;
        Ok(())
    })
}

fn resend<'a>(tx: &'a DatabaseTransaction, (run, at): &'a (RunId, i64)) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let updated = webhook::Entity::update_many()
            .col_expr(webhook::Column::Tries, Expr::value(0_i64))
            .col_expr(webhook::Column::DueAt, Expr::value(*at))
            .col_expr(webhook::Column::DiedAt, Expr::value(Option::<i64>::None))
            .filter(webhook::Column::RunId.eq(run.as_str()))
            .exec(tx)
            .await?;
        Ok(updated.rows_affected == 1)
    })
}

const SWEEP: &str = "\
    DELETE FROM webhook_outbox WHERE run_id IN (SELECT run_id FROM webhook_outbox WHERE died_at <= ? LIMIT ?) AND died_at <= ? \
    RETURNING 'gone'";

fn sweep<'a>(tx: &'a DatabaseTransaction, (before, limit): &'a (i64, i64)) -> TxFuture<'a, usize> {
    Box::pin(async move {
        let mut statements = StatementBatch::new(tx);
        statements.add(SWEEP, [(*before).into(), (*limit).into(), (*before).into()]);
        Ok(statements.run(tx).await?.len())
    })
}

fn lease<'a>(
    tx: &'a DatabaseTransaction,
    (now, until, limit): &'a (i64, i64, u64),
) -> TxFuture<'a, Vec<WebhookDelivery>> {
    Box::pin(async move {
        let due = webhook::Entity::find()
            .filter(webhook::Column::DueAt.lte(*now))
            .order_by_asc(webhook::Column::DueAt);
        // On Postgres another process skips the rows locked here; SQLite has a single writer
        // anyway.
        let due = due.limit(*limit).lock_with_behavior(
            sea_orm::sea_query::LockType::Update,
            sea_orm::sea_query::LockBehavior::SkipLocked,
        );
        let mut leased = Vec::new();
        for row in due.all(tx).await? {
            match delivery(&row) {
                Ok(call) => leased.push(call),
                Err(reason) => mark_dead(tx, &row, &reason, *now).await?,
            }
        }
        webhook::Entity::update_many()
            .col_expr(webhook::Column::DueAt, Expr::value(*until))
            .filter(
                webhook::Column::RunId.is_in(leased.iter().map(|call| call.run.run_id.as_str())),
            )
            .exec(tx)
            .await?;
        Ok(leased)
    })
}

fn delivery(row: &webhook::Model) -> Result<WebhookDelivery, String> {
    let run: RunRecord = from_json(&row.run_json)?;
    if run.run_id.as_str() != row.run_id {
        return Err(format!("it reports another run, {}", run.run_id));
    }
    let tries = u32::try_from(row.tries).map_err(|error| error.to_string())?;
    Ok(WebhookDelivery {
        run,
        call: from_json(&row.call_json)?,
        ended_at: moment(row.ended_at),
        tries,
    })
}

/// Makes an unreadable call a dead letter, so that it does not block others and is swept like one.
async fn mark_dead(
    tx: &DatabaseTransaction,
    row: &webhook::Model,
    reason: &str,
    now: i64,
) -> Result<(), DbErr> {
    tracing::error!(
        run_id = row.run_id,
        error = reason,
        "a webhook call cannot be read"
    );
    webhook::Entity::update_many()
        .col_expr(webhook::Column::DueAt, Expr::value(Option::<i64>::None))
        .col_expr(webhook::Column::DiedAt, Expr::value(now))
        .col_expr(
            webhook::Column::LastError,
            Expr::value(format!("the call cannot be read: {}", plain(reason))),
        )
        .filter(webhook::Column::RunId.eq(row.run_id.as_str()))
        .exec(tx)
        .await?;
    Ok(())
}

async fn forget(tx: &DatabaseTransaction, run: &RunId) -> Result<(), TxError<StoreError>> {
    webhook::Entity::delete_by_id(run.as_str()).exec(tx).await?;
    Ok(())
}

fn record_failure<'a>(
    tx: &'a DatabaseTransaction,
    failure: &'a DeliveryFailure,
) -> TxFuture<'a, ()> {
    Box::pin(async move {
        let died = failure.again.is_none().then_some(failure.at);
        webhook::Entity::update_many()
            .col_expr(
                webhook::Column::Tries,
                Expr::col(webhook::Column::Tries).add(1),
            )
            .col_expr(webhook::Column::DueAt, Expr::value(failure.again))
            .col_expr(webhook::Column::DiedAt, Expr::value(died))
            .col_expr(
                webhook::Column::LastError,
                Expr::value(failure.error.as_str()),
            )
            .filter(webhook::Column::RunId.is_in(failure.runs.iter().map(RunId::as_str)))
            .exec(tx)
            .await?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use deerflow_core::tasks::Tasks;
    use deerflow_runtime::runs::RunStatus;
    use deerflow_runtime::runs::store::{RunCommit, RunCommitStore, RunCreateStore, RunEnd};
    use deerflow_runtime::testkit::{at, commit_of, end_in, new_run, run};
    use sea_orm::ConnectionTrait;

    use super::*;
    use crate::{DatabaseConfig, SqlRunStore};

    #[tokio::test]
    async fn unreadable_call_becomes_dead_letter_and_blocks_no_others() {
        let tasks = Tasks::new();
        let db = Database::open(&DatabaseConfig::Memory, &tasks)
            .await
            .unwrap();
        let (runs, outbox) = (SqlRunStore::new(db.clone()), SqlWebhookOutbox::new(&db));
        for (id, thread) in [("bad", "t1"), ("good", "t2")] {
            let admitted = runs.admit(new_run(id, thread)).await.unwrap().run;
            let call = WebhookCall {
                url: "http://h.test/".to_owned(),
                started_at: at(2),
                values: None,
                error: None,
            };
            let end = RunEnd {
                webhook: Some(call),
                ..end_in(RunStatus::Error)
            };
            let commit = RunCommit {
                end: Some(end),
                ..commit_of(&admitted)
            };
            runs.commit(commit.into()).await.unwrap();
        }
        db.reads()
            .execute_unprepared("UPDATE webhook_outbox SET run_json = '{' WHERE run_id = 'bad'")
            .await
            .unwrap();
        let due = outbox.due(at(9), at(20), 9).await.unwrap();
        assert_eq!(
            due.iter().map(|call| &call.run.run_id).collect::<Vec<_>>(),
            [&run("good")]
        );
        let dead = outbox.letters(true, 9).await.unwrap();
        assert_eq!(
            (dead.len(), &dead[0].run_id, dead[0].died_at),
            (1, &run("bad"), Some(at(9)))
        );
        assert!(
            dead[0]
                .last_error
                .as_deref()
                .is_some_and(|error| error.contains("cannot be read")),
            "{dead:?}"
        );
        assert_eq!(
            outbox.due(at(20), at(30), 9).await.map(|calls| calls.len()),
            Ok(1)
        );
    }
}
