//! Takeover of orphaned runs: each is claimed by one other node, under a new attempt.

use chrono::{DateTime, Utc};
use deerflow_core::ids::NodeId;
use deerflow_runtime::runs::RunStatus;
use deerflow_runtime::runs::store::{Claimed, StoreError};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, ExprTrait, QueryFilter,
    QueryOrder, QuerySelect, Select,
};

use super::large_texts::load_one;
use super::queue::claimed;
use super::row::readable;
use super::unreadable::end_unreadable;
use crate::db::clock::now_of;
use crate::db::connect::Database;
use crate::db::entity::{micros, run, thread};
use crate::db::error::read;
use crate::db::tx::TxError;

/// Takes over the oldest orphaned run. Avoids a write if there is none.
pub(super) async fn take_over(
    db: &Database,
    node: &NodeId,
    now: DateTime<Utc>,
) -> Result<Option<Claimed>, StoreError> {
    loop {
        let next = orphaned(db.reads())
            .order_by_asc(run::Column::CreatedAt)
            .order_by_asc(run::Column::RunId);
        let next = next
            .select_only()
            .columns([run::Column::RunId, run::Column::ThreadId])
            .into_tuple::<(String, String)>();
        let Some((run, thread)) = read(next.one(db.reads()).await)? else {
            return Ok(None);
        };
        let args = (run, thread, node.clone(), micros(now));
        let claimed = db
            .writes()
            .release(args, |tx, (run, thread, node, now)| {
                Box::pin(claim_orphan(tx, run, thread, node, *now))
            })
            .await?;
        // Another node claimed it first, or the run was unreadable: the state has changed, so poll
        // again.
        if claimed.is_some() {
            return Ok(claimed);
        }
    }
}

/// Runs whose owner has no valid lease.
fn orphaned(db: &impl ConnectionTrait) -> Select<run::Entity> {
    let now = now_of(db.get_database_backend());
    let lives = format!(
        "NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.node_id = runs.owner AND nodes.lease_until > {now})"
    );
    run::Entity::find()
        .filter(run::is_owned())
        .filter(Expr::cust(lives))
}

/// Holds the thread's lock, like admissions and ends.
async fn claim_orphan(
    tx: &DatabaseTransaction,
    run: &str,
    thread: &str,
    node: &NodeId,
    now: i64,
) -> Result<Option<Claimed>, TxError<StoreError>> {
    thread::Entity::find_by_id(thread)
        .lock_exclusive()
        .one(tx)
        .await?;
    let orphan = orphaned(tx)
        .filter(run::Column::RunId.eq(run))
        .one(tx)
        .await?;
    let Some(mut row) = load_one(tx, orphan).await? else {
        return Ok(None);
    };
    if let Err(reason) = readable(&row) {
        end_unreadable(tx, row, &reason, now).await?;
        return Ok(None);
    }
    let updated = run::Entity::update_many()
        .col_expr(
            run::Column::Status,
            Expr::value(RunStatus::Starting.as_str()),
        )
        .col_expr(run::Column::Attempt, Expr::col(run::Column::Attempt).add(1))
        .col_expr(run::Column::Losses, Expr::col(run::Column::Losses).add(1))
        .col_expr(run::Column::LastBatch, Expr::value(0_i64))
        .col_expr(run::Column::Owner, Expr::value(node.as_str()))
        .col_expr(run::Column::UpdatedAt, Expr::value(now))
        .filter(run::Column::RunId.eq(run))
        .filter(run::Column::Attempt.eq(row.attempt))
        .filter(run::is_owned())
        .exec(tx)
        .await?;
    if updated.rows_affected == 0 {
        return Ok(None);
    }
    RunStatus::Starting.as_str().clone_into(&mut row.status);
    row.attempt += 1;
    row.losses += 1;
    row.updated_at = now;
    Ok(Some(claimed(tx, row).await?))
}
