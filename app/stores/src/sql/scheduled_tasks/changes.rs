//! Transactions that change tasks and their runs.

use deerflow_domain::scheduled_tasks::{
    Begun, Firing, MAX_ENDED_RUNS, ScheduledTask, TaskCreated, TaskRun, TaskUpdated, advance, begin,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, Condition, DatabaseTransaction, DbErr, EntityTrait,
    IntoActiveModel, PaginatorTrait, QueryFilter, QueryOrder, QuerySelect,
};

use super::row::{run_row, task_of, task_row};
use crate::db::entity::{micros, plain, scheduled_task, scheduled_task_run, thread};
use crate::db::tx::TxFuture;
use crate::sql::accounts::owner_is_enabled;

/// Column with the owner of a task.
pub(super) const OWNER: &str = "scheduled_tasks.user_id";
/// Statuses of runs that have not ended.
pub(super) const ACTIVE: [&str; 2] = ["queued", "running"];

pub(super) fn create<'a>(
    tx: &'a DatabaseTransaction,
    (task, limit): &'a (ScheduledTask, u64),
) -> TxFuture<'a, TaskCreated> {
    Box::pin(async move {
        let owned = scheduled_task::Entity::find()
            .filter(scheduled_task::Column::UserId.eq(plain(&task.user_id)));
        if owned.count(tx).await? >= *limit {
            return Ok(TaskCreated::LimitReached);
        }
        if !owns_thread(tx, task).await? {
            return Ok(TaskCreated::NoThread);
        }
        scheduled_task::Entity::insert(task_row(task).into_active_model())
            .exec_without_returning(tx)
            .await?;
        Ok(TaskCreated::New)
    })
}

pub(super) fn update<'a>(
    tx: &'a DatabaseTransaction,
    task: &'a ScheduledTask,
) -> TxFuture<'a, TaskUpdated> {
    Box::pin(async move {
        // The thread is locked before the task, as by the deletion of the thread.
        let owns_thread = owns_thread(tx, task).await?;
        let stored = locked(tx, &task.task_id).await?;
        let is_current = |stored: &ScheduledTask| {
            stored.user_id == task.user_id && stored.version == task.version
        };
        if !stored.as_ref().is_some_and(is_current) {
            return Ok(TaskUpdated::Outdated);
        }
        if !owns_thread {
            return Ok(TaskUpdated::NoThread);
        }
        replace(tx, task).await?;
        Ok(TaskUpdated::Stored)
    })
}

pub(super) fn delete<'a>(
    tx: &'a DatabaseTransaction,
    (user, task): &'a (String, String),
) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let owned = scheduled_task::Entity::delete_many()
            .filter(scheduled_task::Column::TaskId.eq(task))
            .filter(scheduled_task::Column::UserId.eq(user));
        Ok(owned.exec(tx).await?.rows_affected == 1)
    })
}

pub(super) fn store_firing<'a>(
    tx: &'a DatabaseTransaction,
    (run, firing): &'a (TaskRun, Option<Firing>),
) -> TxFuture<'a, Begun> {
    Box::pin(async move {
        // The lock orders concurrent firings of one task.
        let Some(mut task) = locked(tx, &run.task_id).await? else {
            return Ok(Begun::Gone);
        };
        if firing.is_some() && !is_owner_enabled(tx, &run.task_id).await? {
            return Ok(Begun::Gone);
        }
        let active = scheduled_task_run::Entity::find()
            .filter(scheduled_task_run::Column::TaskId.eq(&run.task_id))
            .filter(scheduled_task_run::Column::Status.is_in(ACTIVE));
        let has_active = active.one(tx).await?.is_some();
        let mut run = run.clone();
        let begun = begin(&mut task, &mut run, *firing, has_active);
        let is_stored = match begun {
            Begun::Queued => true,
            Begun::Busy => firing.is_some(),
            Begun::Gone => false,
        };
        if is_stored {
            replace(tx, &task).await?;
            scheduled_task_run::Entity::insert(run_row(&run).into_active_model())
                .exec_without_returning(tx)
                .await?;
            prune(tx, &run.task_id).await?;
        }
        Ok(begun)
    })
}

pub(super) fn store_progress<'a>(
    tx: &'a DatabaseTransaction,
    (seen, run): &'a (TaskRun, TaskRun),
) -> TxFuture<'a, bool> {
    Box::pin(async move {
        // The task is locked before its run, as by a firing and by the deletion of the task.
        let Some(mut task) = locked(tx, &run.task_id).await? else {
            return Ok(false);
        };
        let changed = run_row(run).into_active_model().reset_all();
        let updated = scheduled_task_run::Entity::update_many()
            .set(changed)
            .filter(scheduled_task_run::Column::TaskRunId.eq(&run.task_run_id))
            .filter(scheduled_task_run::Column::Status.eq(seen.status.as_str()))
            .filter(scheduled_task_run::Column::ClaimedAt.eq(micros(seen.claimed_at)))
            .exec(tx)
            .await?;
        if updated.rows_affected != 1 {
            return Ok(false);
        }
        advance(&mut task, seen, run);
        replace(tx, &task).await?;
        Ok(true)
    })
}

/// Deletes the oldest ended runs of a task.
async fn prune(tx: &DatabaseTransaction, task: &str) -> Result<(), DbErr> {
    let of_task = Condition::all()
        .add(scheduled_task_run::Column::TaskId.eq(task))
        .add(scheduled_task_run::Column::Status.is_not_in(ACTIVE));
    let oldest_kept = scheduled_task_run::Entity::find()
        .filter(of_task.clone())
        .order_by_desc(scheduled_task_run::Column::CreatedAt)
        .offset(MAX_ENDED_RUNS as u64 - 1)
        .limit(1)
        .one(tx)
        .await?;
    if let Some(oldest) = oldest_kept {
        scheduled_task_run::Entity::delete_many()
            .filter(of_task)
            .filter(scheduled_task_run::Column::CreatedAt.lt(oldest.created_at))
            .exec(tx)
            .await?;
    }
    Ok(())
}

/// Reports whether the user of a task has no disabled account.
async fn is_owner_enabled(tx: &DatabaseTransaction, task: &str) -> Result<bool, DbErr> {
    let found = scheduled_task::Entity::find_by_id(task)
        .filter(owner_is_enabled(OWNER))
        .one(tx)
        .await?;
    Ok(found.is_some())
}

/// Reads a task and locks its row until the end of the transaction.
async fn locked(tx: &DatabaseTransaction, task: &str) -> Result<Option<ScheduledTask>, DbErr> {
    let row = scheduled_task::Entity::find_by_id(task)
        .lock_exclusive()
        .one(tx)
        .await?;
    row.map(task_of).transpose()
}

/// Replaces the row of a locked task, with its next version.
async fn replace(tx: &DatabaseTransaction, task: &ScheduledTask) -> Result<(), DbErr> {
    let mut row = task_row(task);
    row.version += 1;
    scheduled_task::Entity::update_many()
        .set(row.into_active_model().reset_all())
        .filter(scheduled_task::Column::TaskId.eq(&task.task_id))
        .exec(tx)
        .await?;
    Ok(())
}

/// Reports whether the thread of a task, if it has one, exists and belongs to its user.
async fn owns_thread(tx: &DatabaseTransaction, task: &ScheduledTask) -> Result<bool, DbErr> {
    let Some(id) = &task.thread_id else {
        return Ok(true);
    };
    // The lock prevents a deletion of the thread between the check and the write.
    let owned = thread::Entity::find_by_id(id.as_str())
        .filter(thread::Column::UserId.eq(plain(&task.user_id)))
        .lock_shared();
    Ok(owned.one(tx).await?.is_some())
}
