//! Unfinished runs of a user, counted for the limits per user.

use deerflow_runtime::runs::UserRuns;
use deerflow_runtime::runs::store::NewRun;
use sea_orm::sea_query::{Alias, Expr, Query, SimpleExpr};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, ExprTrait, Statement};

use crate::db::entity::run;
use crate::db::text_lock::lock_text;

/// On Postgres, a run starts without the user's lock if this many further runs would be permitted:
/// more than all nodes admit at the same time.
const UNLOCKED_MARGIN: u64 = 64;

const COUNT: &str = "\
    SELECT (SELECT COUNT(*) FROM runs WHERE user_id = $1 AND status IN ('starting', 'running')), \
        (SELECT COUNT(*) FROM runs WHERE user_id = $1 AND status = 'pending' AND cancel_action IS NULL)";

/// Counts the active runs of a user with prepared statements of SQLite.
pub(super) const COUNT_ACTIVE: &str = "\
    SELECT COUNT(*) FROM runs WHERE user_id = ?1 AND status IN ('starting', 'running')";

/// Counts the user's runs while no other transaction starts or queues one. Counts nothing if the
/// run has no limits.
pub(super) async fn locked_count(
    tx: &DatabaseTransaction,
    new: &NewRun,
) -> Result<UserRuns, DbErr> {
    match &new.user_id {
        Some(user) if !new.per_user.is_unlimited() => locked_count_of(tx, user).await,
        _ => Ok(UserRuns::default()),
    }
}

/// Counts the runs of `user` while no other transaction starts or queues one.
pub(super) async fn locked_count_of(
    tx: &DatabaseTransaction,
    user: &str,
) -> Result<UserRuns, DbErr> {
    // Threads are locked before users, so that transactions cannot wait for each other.
    lock_text(tx, &format!("runs of {user}")).await?;
    count_unfinished(tx, user).await
}

/// Counts the unfinished runs of `user`.
pub(crate) async fn count_unfinished(
    db: &impl ConnectionTrait,
    user: &str,
) -> Result<UserRuns, DbErr> {
    let count = Statement::from_sql_and_values(db.get_database_backend(), COUNT, [user.into()]);
    let row = db.query_one_raw(count).await?;
    let row = row.ok_or_else(|| DbErr::Custom("a count returned no row".to_owned()))?;
    let number = |column| {
        row.try_get_by_index::<i64>(column)
            .map(|count| count.unsigned_abs())
    };
    Ok(UserRuns {
        active: number(0)?,
        queued: number(1)?,
    })
}

/// Returns the number of active runs below which a run of the user starts without the user's lock on
/// Postgres; `None` without a limit.
pub(super) fn max_active_unlocked(new: &NewRun) -> Option<i64> {
    let max = new.per_user.max_active.filter(|_| new.user_id.is_some())?;
    Some(i64::try_from(max.saturating_sub(UNLOCKED_MARGIN)).unwrap_or(i64::MAX))
}

/// Condition under which a run may start without the user's lock.
pub(super) fn may_start_unlocked(new: &NewRun, backend: DbBackend) -> Option<SimpleExpr> {
    let (max, user) = (new.per_user.max_active?, new.user_id.as_ref()?);
    let margin = match backend {
        // The single writer runs one transaction at a time.
        DbBackend::Sqlite => 0,
        _ => UNLOCKED_MARGIN,
    };
    let Some(last) = max.checked_sub(margin + 1) else {
        return Some(Expr::cust("1 = 0"));
    };
    let active = Alias::new("active");
    let last_permitted = Query::select()
        .expr(Expr::val(1))
        .from_as(run::Entity, active.clone())
        .and_where(Expr::col((active, run::Column::UserId)).eq(user.as_str()))
        .and_where(Expr::cust(IS_ACTIVE))
        .limit(1)
        .offset(Ord::min(last, i64::MAX as u64))
        .take();
    Some(Expr::exists(last_permitted).not())
}

/// Condition on a queued run: it was released, or its user has less than `max` active runs.
pub(super) fn user_may_start(max: u64) -> SimpleExpr {
    let max = Ord::min(max, i64::MAX as u64);
    Expr::cust(format!(
        "(runs.attempt > 1 OR runs.user_id IS NULL OR runs.user_id NOT IN (\
            SELECT active.user_id FROM runs AS active WHERE active.user_id IS NOT NULL AND {IS_ACTIVE} \
            GROUP BY active.user_id HAVING COUNT(*) >= {max}))"
    ))
}

/// Condition on the table `active`, written like the condition of the index of owned runs.
const IS_ACTIVE: &str = "active.status IN ('starting', 'running')";
