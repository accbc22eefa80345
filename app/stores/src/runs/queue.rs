//! Runs that wait: whose turn it is, taken by one caller only.

use std::time::Duration;

use chrono::{DateTime, Utc};
use harness::ids::NodeId;
use harness::runtime::runs::RunStatus;
use harness::runtime::runs::store::{Claimed, Recipe, StoreError};
use sea_orm::sea_query::{Alias, Expr, Query, SelectStatement};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, ExprTrait, QueryFilter,
    QueryOrder, QuerySelect, Statement,
};

use super::row::{from_json, readable, record, waits, was_given_back};
use super::unreadable::end_unreadable;
use crate::connect::Database;
use crate::entity::{micros, moment, run, thread};
use crate::error::read;
use crate::nodes::now_of;
use crate::tx::TxError;

/// Takes the run whose turn it is at `now`. Nothing is written while there is none.
pub(super) async fn claim(
    db: &Database,
    node: &NodeId,
    now: DateTime<Utc>,
) -> Result<Option<Claimed>, StoreError> {
    loop {
        let next = turns(micros(now))
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
        let taken = db.writes().run(
            (thread, node.clone(), micros(now)),
            |tx, (thread, node, now)| Box::pin(take(tx, thread, node, *now)),
        );
        let taken = taken.await?;
        // Somebody else was faster there, or the run could not be read: something has changed, so look again.
        if taken.is_some() {
            return Ok(taken);
        }
    }
}

/// When the next run that waits for its time may begin.
pub(super) async fn next_due(
    db: &Database,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    let later = run::Entity::find()
        .select_only()
        .expr(due())
        .filter(waits())
        .filter(due().gt(micros(now)))
        .order_by_asc(due());
    Ok(read(later.into_tuple::<i64>().one(db.reads()).await)?.map(moment))
}

/// Runs that may begin. Only within a thread their order is promised.
fn turns(now: i64) -> sea_orm::Select<run::Entity> {
    run::Entity::find()
        .filter(waits())
        .filter(was_given_back().or(due().lte(now)))
        .filter(Expr::exists(holder_beside()).not())
}

/// When a run may begin. Nodes of the time before `due_at` and `place` write neither: what they delay begins when it is made.
fn due() -> Expr {
    Expr::cust("COALESCE(runs.due_at, CASE WHEN runs.place = 0 THEN runs.created_at ELSE 0 END)")
}

/// The run that holds the same thread and that nobody can claim: it is at work, or was given back and is to end.
fn holder_beside() -> SelectStatement {
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

/// Takes the first run of the thread that may begin. Under the thread's lock, as admissions and ends are, so nobody else does.
async fn take(
    tx: &DatabaseTransaction,
    of: &str,
    node: &NodeId,
    now: i64,
) -> Result<Option<Claimed>, TxError<StoreError>> {
    thread::Entity::find_by_id(of)
        .lock_exclusive()
        .one(tx)
        .await?;
    let first = turns(now)
        .filter(run::Column::ThreadId.eq(of))
        .order_by_desc(was_given_back());
    let first = first
        .order_by_asc(run::Column::Place)
        .order_by_asc(run::Column::CreatedAt)
        .order_by_asc(run::Column::RunId)
        .one(tx)
        .await?;
    let Some(mut row) = first else {
        return Ok(None);
    };
    if let Err(why) = readable(&row) {
        end_unreadable(tx, row, &why, now).await?;
        return Ok(None);
    }
    let taken = run::Entity::update_many()
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
    if taken.rows_affected == 0 {
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

/// A taken row, as it is now.
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
        .ok_or_else(|| "nothing was written down".to_owned());
    let recipe = recipe.and_then(|text| from_json::<Recipe>(&text));
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
    row.ok_or_else(|| DbErr::Custom("the database does not tell the time".to_owned()))?
        .try_get_by_index(0)
}
