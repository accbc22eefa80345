//! Cron store over SQL.

mod row;
mod search;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::crons::{Created, Cron, CronSearch, CronStore, DueFiring};
use deerflow_runtime::runs::store::{CreatedResource, RequestKey, StoreError};
use sea_orm::sea_query::{Expr, NullOrdering};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, DatabaseTransaction, EntityTrait, IntoActiveModel,
    Order, QueryFilter, QueryOrder, QuerySelect,
};
use uuid::Uuid;

use crate::db::connect::Database;
use crate::db::entity::{cron, micros, moment, plain, thread};
use crate::db::error::{DbFailure, FromDbFailure, read};
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::{TxError, TxFuture};
use crate::sql::accounts::owner_is_enabled;
use crate::sql::requests::{claim_key, key_claimed, lookup_key};

/// Cron store over SQL.
#[derive(Debug, Clone)]
pub struct SqlCronStore {
    db: Database,
}

impl SqlCronStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}

#[async_trait]
impl CronStore for SqlCronStore {
    async fn create(&self, cron: Cron, request: Option<RequestKey>) -> Result<Created, StoreError> {
        match self.db.writes().create((cron, request), create).await {
            Ok(()) => Ok(Created::New),
            Err(CreateRefusal::Found(found)) => Ok(found),
            Err(CreateRefusal::Failed(error)) => Err(error),
        }
    }

    async fn get(&self, user: &str, cron: Uuid) -> Result<Option<Cron>, StoreError> {
        let row = read(
            row::of_user(user)
                .filter(cron::Column::CronId.eq(cron.to_string()))
                .one(self.db.reads())
                .await,
        )?;
        read(row.map(row::record).transpose())
    }

    async fn search(&self, user: &str, search: &CronSearch) -> Result<Vec<Cron>, StoreError> {
        search::search(self.db.reads(), user, search).await
    }

    async fn count(&self, user: &str, search: &CronSearch) -> Result<u64, StoreError> {
        search::count(self.db.reads(), user, search).await
    }

    async fn update(
        &self,
        cron: Cron,
        seen: DateTime<Utc>,
        reschedule: bool,
    ) -> Result<bool, StoreError> {
        self.db
            .writes()
            .create((cron, micros(seen), reschedule), update)
            .await
    }

    async fn delete(&self, user: &str, cron: Uuid) -> Result<bool, StoreError> {
        self.db
            .writes()
            .release((plain(user), cron.to_string()), delete)
            .await
    }

    async fn due(
        &self,
        at: DateTime<Utc>,
        lost: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DueFiring>, StoreError> {
        let ready = Condition::all()
            .add(cron::Column::Enabled.eq(true))
            .add(cron::Column::NextRunDate.lte(micros(at)));
        let lost_ones = cron::Column::TakenAt.lt(micros(lost));
        let select = cron::Entity::find()
            .filter(Condition::any().add(ready).add(lost_ones))
            .filter(owner_is_enabled(OWNER));
        // For a lost firing `next_run_date` is not its due time, so lost firings are ordered by the
        // time of their claim. SQLite and Postgres differ in the default order of nulls.
        let select = select
            .order_by_with_nulls(cron::Column::TakenAt, Order::Asc, NullOrdering::First)
            .order_by_with_nulls(cron::Column::NextRunDate, Order::Asc, NullOrdering::First)
            .order_by_asc(cron::Column::CronId)
            .limit(limit as u64);
        let rows = read(select.all(self.db.reads()).await)?;
        let mut due: Vec<DueFiring> = rows
            .into_iter()
            .filter_map(|row| due_of(row, micros(at)))
            .collect();
        due.sort_by_key(|due| (due.fires_for, due.cron.cron_id));
        Ok(due)
    }

    async fn claim(
        &self,
        due: &DueFiring,
        next: Option<DateTime<Utc>>,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        self.db.writes().run((due.clone(), next, at), take).await
    }

    async fn finish(&self, cron: Uuid, fires_for: DateTime<Utc>) -> Result<(), StoreError> {
        self.db
            .writes()
            .release((cron.to_string(), micros(fires_for)), finish)
            .await
    }
}

/// Column with the owner of a cron.
const OWNER: &str = "crons.user_id";

/// Returns the due firing of a row, or its firing that was claimed and not finished.
fn due_of(row: cron::Model, at: i64) -> Option<DueFiring> {
    let next = row.next_run_date.filter(|next| row.enabled && *next <= at);
    let (fires_for, taken_at) = match next {
        Some(next) => (next, None),
        None => (row.fires_for?, row.taken_at),
    };
    Some(DueFiring {
        cron: row::readable(row)?,
        fires_for: moment(fires_for),
        claimed_at: taken_at.map(moment),
    })
}

/// Reason why the transaction of a new cron is rolled back.
enum CreateRefusal {
    /// No cron was created, so the idempotency key is free again, or unchanged.
    Found(Created),
    Failed(StoreError),
}

impl FromDbFailure for CreateRefusal {
    fn from_db_failure(failure: DbFailure) -> Self {
        Self::Failed(failure.into())
    }
}

fn create<'a>(
    tx: &'a DatabaseTransaction,
    (cron, request): &'a (Cron, Option<RequestKey>),
) -> TxFuture<'a, (), CreateRefusal> {
    Box::pin(async move {
        if let Some(key) = request {
            let mut statements = StatementBatch::new(tx);
            claim_key(
                &mut statements,
                key,
                &CreatedResource::Cron(cron.cron_id),
                cron.created_at,
            );
            if !key_claimed(&statements.run(tx).await?) {
                return Err(TxError::Refused(CreateRefusal::Found(Created::Known(
                    lookup_key(tx, key).await?,
                ))));
            }
        }
        if let Some(on) = &cron.thread_id {
            // The lock prevents a deletion of the thread between the check and the write.
            let owned = thread::Entity::find_by_id(on.as_str())
                .filter(thread::Column::UserId.eq(plain(&cron.user_id)));
            if owned.lock_shared().one(tx).await?.is_none() {
                return Err(TxError::Refused(CreateRefusal::Found(Created::NoThread)));
            }
        }
        cron::Entity::insert(row::new_row(cron).into_active_model())
            .exec_without_returning(tx)
            .await?;
        Ok(())
    })
}

fn update<'a>(
    tx: &'a DatabaseTransaction,
    (cron, seen, reschedule): &'a (Cron, i64, bool),
) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let mut changed = row::new_row(cron).into_active_model().reset_all();
        for column in [
            cron::Column::FiresFor,
            cron::Column::TakenAt,
            cron::Column::CreatedAt,
            cron::Column::ThreadId,
        ] {
            changed.not_set(column);
        }
        if !reschedule {
            changed.not_set(cron::Column::NextRunDate);
        }
        let updated = cron::Entity::update_many()
            .set(changed)
            .filter(cron::Column::CronId.eq(cron.cron_id.to_string()))
            .filter(cron::Column::UserId.eq(plain(&cron.user_id)))
            .filter(cron::Column::UpdatedAt.eq(*seen))
            .exec(tx)
            .await?;
        Ok(updated.rows_affected == 1)
    })
}

fn delete<'a>(
    tx: &'a DatabaseTransaction,
    (user, cron): &'a (String, String),
) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let owned = cron::Entity::delete_many()
            .filter(cron::Column::CronId.eq(cron))
            .filter(cron::Column::UserId.eq(user));
        Ok(owned.exec(tx).await?.rows_affected == 1)
    })
}

fn take<'a>(
    tx: &'a DatabaseTransaction,
    (due, next, at): &'a (DueFiring, Option<DateTime<Utc>>, DateTime<Utc>),
) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let fires_for = micros(due.fires_for);
        let updated = cron::Entity::update_many()
            .col_expr(cron::Column::FiresFor, Expr::value(fires_for))
            .col_expr(cron::Column::TakenAt, Expr::value(micros(*at)))
            .filter(cron::Column::CronId.eq(due.cron.cron_id.to_string()))
            .filter(owner_is_enabled(OWNER));
        let updated = match due.claimed_at {
            None => updated
                .col_expr(cron::Column::NextRunDate, Expr::value(next.map(micros)))
                .filter(cron::Column::NextRunDate.eq(fires_for))
                .filter(cron::Column::Enabled.eq(true)),
            Some(taken_at) => updated
                .filter(cron::Column::FiresFor.eq(fires_for))
                .filter(cron::Column::TakenAt.eq(micros(taken_at))),
        };
        Ok(updated.exec(tx).await?.rows_affected == 1)
    })
}

fn finish<'a>(
    tx: &'a DatabaseTransaction,
    (cron, fires_for): &'a (String, i64),
) -> TxFuture<'a, ()> {
    Box::pin(async move {
        cron::Entity::update_many()
            .col_expr(cron::Column::FiresFor, Expr::value(None::<i64>))
            .col_expr(cron::Column::TakenAt, Expr::value(None::<i64>))
            .filter(cron::Column::CronId.eq(cron))
            .filter(cron::Column::FiresFor.eq(*fires_for))
            .exec(tx)
            .await?;
        Ok(())
    })
}
