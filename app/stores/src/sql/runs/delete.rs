//! Deletion of runs.

use async_trait::async_trait;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_runtime::runs::store::{RunDeleteStore, StoreError};
use sea_orm::{ColumnTrait, DatabaseTransaction, EntityTrait, ExprTrait, QueryFilter};

use super::SqlRunStore;
use crate::db::entity::{checkpoint, run, run_event};
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::{TxError, TxFuture};
use crate::sql::feedback::delete_feedback;
use crate::sql::requests::{delete_thread_values, delete_values};
use crate::sql::run_events::delete_thread_events;

#[async_trait]
impl RunDeleteStore for SqlRunStore {
    async fn delete(&self, run: &RunId) -> Result<bool, StoreError> {
        self.db.writes().release(run.clone(), delete_run).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.db
            .writes()
            .release(thread.clone(), |tx, thread| {
                Box::pin(delete_thread_runs(tx, thread))
            })
            .await
    }
}

fn delete_run<'a>(tx: &'a DatabaseTransaction, id: &'a RunId) -> TxFuture<'a, bool> {
    Box::pin(async move {
        let finished = run::is_active().not();
        // The thread id lets the two deletes below use an index; there is no index by run alone.
        let Some(row) = run::Entity::find_by_id(id.as_str())
            .filter(finished.clone())
            .one(tx)
            .await?
        else {
            return Ok(false);
        };
        let mut statements = StatementBatch::new(tx);
        delete_values(&mut statements, id.as_str());
        statements.run(tx).await?;
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
        delete_feedback(tx, &row.thread_id, Some(id.as_str())).await?;
        Ok(true)
    })
}

/// Deletes a thread's runs, their feedback and events.
pub(crate) async fn delete_thread_runs<E>(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
) -> Result<(), TxError<E>> {
    let mut statements = StatementBatch::new(tx);
    delete_thread_values(&mut statements, thread.as_str());
    statements.run(tx).await?;
    run::Entity::delete_many()
        .filter(run::Column::ThreadId.eq(thread.as_str()))
        .exec(tx)
        .await?;
    delete_feedback(tx, thread.as_str(), None).await?;
    delete_thread_events(tx, thread).await?;
    Ok(())
}
