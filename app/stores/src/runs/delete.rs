//! Deleting runs.

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use harness::ids::{RunId, ThreadId};
use harness::runtime::runs::store::{RunDeleteStore, StoreError};
use sea_orm::{ColumnTrait, DatabaseTransaction, EntityTrait, ExprTrait, QueryFilter};

use super::SqlRunStore;
use super::row::is_active;
use crate::entity::{checkpoint, run, run_event};
use crate::feedback::delete_feedback_of;
use crate::requests::{forget_values, forget_values_on};
use crate::run_events::delete_thread_events;
use crate::script::Script;
use crate::tx::TxError;

#[async_trait]
impl RunDeleteStore for SqlRunStore {
    async fn delete(&self, run: &RunId) -> Result<bool, StoreError> {
        self.db.writes().release(run.clone(), delete_run).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.db
            .writes()
            .release(thread.clone(), |tx, thread| {
                Box::pin(delete_runs_of(tx, thread))
            })
            .await
    }
}

fn delete_run<'a>(
    tx: &'a DatabaseTransaction,
    id: &'a RunId,
) -> BoxFuture<'a, Result<bool, TxError<StoreError>>> {
    Box::pin(async move {
        let finished = is_active().not();
        // The thread narrows the two deletes below to an index; a thread's rows are found by no other.
        let Some(row) = run::Entity::find_by_id(id.as_str())
            .filter(finished.clone())
            .one(tx)
            .await?
        else {
            return Ok(false);
        };
        let mut script = Script::new(tx);
        forget_values(&mut script, id.as_str());
        script.run(tx).await?;
        if run::Entity::delete_by_id(id.as_str())
            .filter(finished)
            .exec(tx)
            .await?
            .rows_affected
            == 0
        {
            return Ok(false);
        }
        let of_run = run_event::Column::ThreadId
            .eq(row.thread_id.as_str())
            .and(run_event::Column::RunId.eq(id.as_str()));
        run_event::Entity::delete_many()
            .filter(of_run)
            .exec(tx)
            .await?;
        let of_run = checkpoint::Column::ThreadId
            .eq(row.thread_id.as_str())
            .and(checkpoint::Column::RunId.eq(id.as_str()));
        checkpoint::Entity::delete_many()
            .filter(of_run)
            .exec(tx)
            .await?;
        delete_feedback_of(tx, &row.thread_id, Some(id.as_str())).await?;
        Ok(true)
    })
}

/// Removes a thread's runs, their feedback and events.
pub(crate) async fn delete_runs_of<E>(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
) -> Result<(), TxError<E>> {
    let mut script = Script::new(tx);
    forget_values_on(&mut script, thread.as_str());
    script.run(tx).await?;
    run::Entity::delete_many()
        .filter(run::Column::ThreadId.eq(thread.as_str()))
        .exec(tx)
        .await?;
    delete_feedback_of(tx, thread.as_str(), None).await?;
    delete_thread_events(tx, thread).await?;
    Ok(())
}
