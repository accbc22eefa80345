//! Queue of pending runs. Each run is claimed by one caller only.

use std::time::Duration;

use chrono::{DateTime, Utc};
use deerflow_core::ids::NodeId;
use deerflow_runtime::runs::store::{Claimed, StoreError};
use deerflow_runtime::runs::{RunStatus, UserRunLimits};
use sea_orm::sea_query::{Alias, Expr, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, ExprTrait, QueryFilter,
    QueryOrder, QuerySelect, Statement,
};

use super::large_texts::load_one;
use super::row::{readable, record};
use super::stored_request::read_request;
use super::unreadable::end_unreadable;
use super::user_runs;
use crate::db::clock::now_of;
use crate::db::connect::Database;
use crate::db::entity::{micros, moment, run, thread};
use crate::db::error::read;
use crate::db::tx::TxError;

/// Claims the next run that may start at `now`. Avoids a write if there is none.
pub(super) async fn claim(
    db: &Database,
    node: &NodeId,
    now: DateTime<Utc>,
    limits: UserRunLimits,
) -> Result<Option<Claimed>, StoreError> {
    loop {
        let next = claimable(micros(now), limits)
            .order_by_asc(run::Column::CreatedAt)
            .order_by_asc(run::Column::RunId)
            .select_only()
            .column(run::Column::ThreadId)
            .into_tuple::<String>()
            .one(db.reads())
            .await;
        let Some(thread) = read(next)? else {
            return Ok(None);
        };
        let claim = db.writes().run(
            (thread, node.clone(), micros(now), limits),
            |tx, (thread, node, now, limits)| {
                Box::pin(claim_first(tx, thread, node, *now, *limits))
            },
        );
        let claim = claim.await?;
        // Another node claimed it first, or the run was unreadable: the queue has changed, so poll
        // again.
        if claim.is_some() {
            return Ok(claim);
        }
    }
}

/// Returns the time when the next delayed run may start.
pub(super) async fn next_due(
    db: &Database,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    let later = run::Entity::find()
        .select_only()
        .expr(start_at())
        .filter(run::is_waiting())
        .filter(start_at().gt(micros(now)))
        .order_by_asc(start_at());
    Ok(read(later.into_tuple::<i64>().one(db.reads()).await)?.map(moment))
}

/// Runs that may start. Their order is only guaranteed within a thread.
fn claimable(now: i64, limits: UserRunLimits) -> sea_orm::Select<run::Entity> {
    let claimable = run::Entity::find()
        .filter(run::is_waiting())
        .filter(run::was_released().or(start_at().lte(now)))
        .filter(Expr::exists(blocking_run()).not());
    match limits.max_active {
        Some(max) => claimable.filter(user_runs::user_may_start(max)),
        None => claimable,
    }
}

/// Earliest start of a run. Older versions write neither `due_at` nor `place`: their delayed runs
/// start at `created_at`.
fn start_at() -> Expr {
    Expr::cust("COALESCE(runs.due_at, CASE WHEN runs.place = 0 THEN runs.created_at ELSE 0 END)")
}

/// Another run that blocks the thread and cannot be claimed: it is active, or was released and must
/// end.
fn blocking_run() -> SelectStatement {
    let other = Alias::new("other");
    Query::select()
        .expr(Expr::val(1))
        .from_as(run::Entity, other.clone())
        .and_where(Expr::col((other, run::Column::ThreadId)).equals((run::Entity, run::Column::ThreadId)))
        .and_where(Expr::cust(
            "other.status IN ('pending', 'starting', 'running') \
             AND (other.status <> 'pending' OR (other.attempt > 1 AND other.cancel_action IS NOT NULL))",
        ))
        .take()
}

/// Claims the first run of the thread that may start. Holds the thread's lock, like admissions and
/// ends, so no other node claims it.
async fn claim_first(
    tx: &DatabaseTransaction,
    of: &str,
    node: &NodeId,
    now: i64,
    limits: UserRunLimits,
) -> Result<Option<Claimed>, TxError<StoreError>> {
    thread::Entity::find_by_id(of)
        .lock_exclusive()
        .one(tx)
        .await?;
    let first = claimable(now, limits)
        .filter(run::Column::ThreadId.eq(of))
        .order_by_desc(run::was_released());
    let first = first
        .order_by_asc(run::Column::Place)
        .order_by_asc(run::Column::CreatedAt)
        .order_by_asc(run::Column::RunId)
        .one(tx)
        .await?;
    let Some(mut row) = load_one(tx, first).await? else {
        return Ok(None);
    };
    if let Err(reason) = readable(&row) {
        end_unreadable(tx, row, &reason, now).await?;
        return Ok(None);
    }
    let was_released = row.attempt > 1;
    if let (Some(max), Some(user), false) = (limits.max_active, &row.user_id, was_released)
        && user_runs::locked_count_of(tx, user).await?.active >= max
    {
        return Ok(None);
    }
    let updated = run::Entity::update_many()
        .col_expr(
            run::Column::Status,
            Expr::value(RunStatus::Starting.as_str()),
        )
        .col_expr(run::Column::UpdatedAt, Expr::value(now))
        .col_expr(run::Column::Owner, Expr::value(node.as_str()))
        .filter(run::Column::RunId.eq(row.run_id.as_str()))
        .filter(Expr::cust(
            "runs.status = 'pending' AND runs.cancel_action IS NULL",
        ))
        .exec(tx)
        .await?;
    if updated.rows_affected == 0 {
        return Ok(None);
    }
    thread::Entity::update_many()
        .col_expr(thread::Column::Status, Expr::value("busy"))
        .filter(thread::Column::ThreadId.eq(of))
        .exec(tx)
        .await?;
    RunStatus::Starting.as_str().clone_into(&mut row.status);
    row.updated_at = now;
    Ok(Some(claimed(tx, row).await?))
}

/// Builds the result of a claim from the updated row.
pub(super) async fn claimed(
    tx: &DatabaseTransaction,
    mut row: run::Model,
) -> Result<Claimed, DbErr> {
    let worked = match row.started_at {
        Some(since) => {
            Duration::from_micros(u64::try_from(database_time(tx).await? - since).unwrap_or(0))
        }
        None => Duration::ZERO,
    };
    let recipe = row
        .recipe_json
        .take()
        .ok_or_else(|| "no stored request".to_owned());
    let recipe = recipe.and_then(|text| read_request(&text, &row.kwargs_json));
    let losses = u32::try_from(row.losses).unwrap_or(u32::MAX);
    Ok(Claimed {
        run: record(row)?,
        losses,
        worked,
        recipe,
    })
}

async fn database_time(tx: &DatabaseTransaction) -> Result<i64, DbErr> {
    let backend = tx.get_database_backend();
    let row = tx
        .query_one_raw(Statement::from_string(
            backend,
            format!("SELECT {}", now_of(backend)),
        ))
        .await?;
    row.ok_or_else(|| DbErr::Custom("the database did not return its time".to_owned()))?
        .try_get_by_index(0)
}
