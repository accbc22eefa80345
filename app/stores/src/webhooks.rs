//! The outbox of webhooks: a call is written with the end it tells of, and stays until it is taken or given up.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use harness::ids::RunId;
use harness::runtime::runs::store::{RunCommit, StoreError, WebhookCall, WebhookDelivery, WebhookOutbox};
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, ExprTrait, IntoActiveModel, QueryFilter, QueryOrder, QuerySelect};

use crate::connect::Database;
use crate::entity::{micros, moment, plain, run, webhook};
use crate::error::read;
use crate::runs::{from_json, json_text, record};
use crate::tx::TxError;

/// The outbox over SQL.
#[derive(Debug, Clone)]
pub struct SqlWebhookOutbox {
    db: Database,
}

impl SqlWebhookOutbox {
    /// A view of `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

/// Keeps the call of the end that `commit` has just written.
pub(crate) async fn keep_call(tx: &DatabaseTransaction, commit: &RunCommit, call: &WebhookCall) -> Result<(), DbErr> {
    let Some(row) = run::Entity::find_by_id(commit.run_id.as_str()).one(tx).await? else { return Ok(()) };
    let row = webhook::Model {
        run_id: commit.run_id.to_string(),
        run_json: json_text(&record(row)?),
        call_json: json_text(call),
        signature_key: None,
        ended_at: micros(commit.at),
        tries: 0,
        due_at: Some(micros(commit.at)),
        last_error: None,
    };
    let insert = webhook::Entity::insert(row.into_active_model()).on_conflict(OnConflict::new().do_nothing().to_owned());
    insert.exec_without_returning(tx).await?;
    Ok(())
}

#[async_trait]
impl WebhookOutbox for SqlWebhookOutbox {
    async fn due(&self, now: DateTime<Utc>, leased_until: DateTime<Utc>, limit: usize) -> Result<Vec<WebhookDelivery>, StoreError> {
        let is_due = webhook::Column::DueAt.lte(micros(now));
        // Nothing is written while there is none.
        if read(webhook::Entity::find().filter(is_due).limit(1).one(self.db.reads()).await)?.is_none() {
            return Ok(Vec::new());
        }
        self.db.writes().run((micros(now), micros(leased_until), limit as u64), lease).await
    }

    async fn delivered(&self, run: &RunId) -> Result<(), StoreError> {
        self.db.writes().run(run.clone(), |tx, run| Box::pin(forget(tx, run))).await
    }

    async fn failed(&self, run: &RunId, error: &str, again_at: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        self.db.writes().run((run.clone(), plain(error), again_at.map(micros)), |tx, args| Box::pin(put_off(tx, args))).await
    }
}

fn lease<'a>(
    tx: &'a DatabaseTransaction,
    (now, until, limit): &'a (i64, i64, u64),
) -> BoxFuture<'a, Result<Vec<WebhookDelivery>, TxError<StoreError>>> {
    Box::pin(async move {
        let due = webhook::Entity::find().filter(webhook::Column::DueAt.lte(*now)).order_by_asc(webhook::Column::DueAt);
        // On Postgres another process passes over the rows taken here; SQLite has one writer anyway.
        let due = due.limit(*limit).lock_with_behavior(sea_orm::sea_query::LockType::Update, sea_orm::sea_query::LockBehavior::SkipLocked);
        let rows = due.all(tx).await?;
        webhook::Entity::update_many()
            .col_expr(webhook::Column::DueAt, Expr::value(*until))
            .filter(webhook::Column::RunId.is_in(rows.iter().map(|row| row.run_id.as_str())))
            .exec(tx)
            .await?;
        Ok(rows.into_iter().filter_map(delivery).collect())
    })
}

/// A call that cannot be read must not keep the others; it stays in the table until its end of days.
fn delivery(row: webhook::Model) -> Option<WebhookDelivery> {
    let read = || -> Result<WebhookDelivery, String> {
        Ok(WebhookDelivery {
            run: from_json(&row.run_json)?,
            call: from_json(&row.call_json)?,
            ended_at: moment(row.ended_at),
            tries: u32::try_from(row.tries).map_err(|error| error.to_string())?,
        })
    };
    read().inspect_err(|error| tracing::error!(run_id = row.run_id, error, "a webhook call cannot be read")).ok()
}

async fn forget(tx: &DatabaseTransaction, run: &RunId) -> Result<(), TxError<StoreError>> {
    webhook::Entity::delete_by_id(run.as_str()).exec(tx).await?;
    Ok(())
}

async fn put_off(tx: &DatabaseTransaction, (run, error, again): &(RunId, String, Option<i64>)) -> Result<(), TxError<StoreError>> {
    webhook::Entity::update_many()
        .col_expr(webhook::Column::Tries, Expr::col(webhook::Column::Tries).add(1))
        .col_expr(webhook::Column::DueAt, Expr::value(*again))
        .col_expr(webhook::Column::LastError, Expr::value(error.as_str()))
        .filter(webhook::Column::RunId.eq(run.as_str()))
        .exec(tx)
        .await?;
    Ok(())
}
