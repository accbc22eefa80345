//! Commits of a run: guard, events, checkpoints and end in one transaction.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_core::compute::heavy_poll;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_runtime::runs::store::{CommitError, RunCommit, RunCommitStore, RunEnd};
use deerflow_runtime::runs::{RunCompletionData, ThreadStatus};
use metrics::{counter, histogram};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter};
use tokio::time::Instant;

use super::SqlRunStore;
use super::calls::add_calls;
use super::commit_guard::{CommitCheck, RunState, guard, releases_run};
use super::commit_outcome::{CommitRefusal, ThreadOutcome};
use super::{commit_function, prepared_commit};
use crate::db::entity::{micros, run, thread};
use crate::db::error::read;
use crate::db::json::json_text;
use crate::db::space::WriteClass;
use crate::db::statement_batch::StatementBatch;
use crate::db::tx::{FastWork, TxError};
use crate::sql::checkpoints::{
    add_checkpoints, delete_run_checkpoints, delete_thread_checkpoints, has_pending_nodes,
    new_messages, refuse_incomplete,
};
use crate::sql::feedback::delete_feedback;
use crate::sql::memories::add_update;
use crate::sql::requests::store_values;
use crate::sql::run_events::{add_events, delete_thread_events};
use crate::sql::usage::add_usage;
use crate::sql::webhooks::insert_call;

#[async_trait]
impl RunCommitStore for SqlRunStore {
    async fn commit(&self, commit: Arc<RunCommit>) -> Result<(), CommitError> {
        self.commit_with_outcome(commit).await.map(|_| ())
    }
}

impl SqlRunStore {
    /// Commits, and returns the effect on the thread.
    pub(crate) async fn commit_with_outcome(
        &self,
        commit: Arc<RunCommit>,
    ) -> Result<ThreadOutcome, CommitError> {
        let since = Instant::now();
        let class = if commit.end.is_some() || releases_run(&commit) {
            WriteClass::Release
        } else {
            WriteClass::Progress
        };
        let is_poisoned = commit.end.as_ref().is_some_and(RunEnd::is_poisoned);
        let result = self
            .db
            .writes()
            .run_fast(
                class,
                commit,
                |tx, commit| Box::pin(write(tx, commit)),
                Some(FastWork {
                    sqlite: |connection, commit| prepared_commit::commit(connection, commit),
                    postgres: Some(|pool, commit| commit_function::commit(pool, commit)),
                }),
            )
            .await;
        histogram!("deerflow_commit_seconds").record(since.elapsed());
        match result {
            Err(CommitRefusal::Repeated(outcome)) => Ok(outcome),
            Err(CommitRefusal::Refused(error)) => Err(error),
            Ok(outcome) => {
                if is_poisoned {
                    counter!("deerflow_runs_poisoned_total").increment(1);
                }
                Ok(outcome)
            }
        }
    }

    /// Checks the commit's number and attempt against the current row of the run.
    pub(super) async fn check_commit(
        &self,
        commit: &RunCommit,
    ) -> Result<CommitCheck, CommitError> {
        let row = read(
            run::Entity::find_by_id(commit.run_id.as_str())
                .one(self.db.reads())
                .await,
        )?;
        Ok(CommitCheck::of(row.map(RunState::from).as_ref(), commit))
    }
}

async fn write(
    tx: &DatabaseTransaction,
    commit: &RunCommit,
) -> Result<ThreadOutcome, TxError<CommitRefusal>> {
    let outcome = guard(tx, commit).await?;
    if let Some(call) = commit.end.as_ref().and_then(|end| end.webhook.as_ref()) {
        insert_call(tx, commit.run_id.as_str(), micros(commit.at), call).await?;
    }
    let mut statements = StatementBatch::new(tx);
    add_calls(&mut statements, commit);
    if let Some(end) = &commit.end {
        add_usage(&mut statements, commit.run_id.as_str(), &end.completion);
    }
    if let Some(values) = commit.end.as_ref().and_then(|end| end.kept_values.as_ref()) {
        store_values(&mut statements, &commit.run_id, values);
    }
    if outcome == ThreadOutcome::Deleted {
        statements.run(tx).await?;
        let completion = commit.end.as_ref().map(|end| end.completion.clone());
        delete_temporary_thread(tx, &commit.thread_id, &commit.run_id, completion).await?;
        return Ok(outcome);
    }
    if let Some(update) = &commit.memory_update {
        add_update(&mut statements, &commit.thread_id, update);
    }
    add_events(&mut statements, &commit.events);
    if commit
        .end
        .as_ref()
        .is_some_and(|end| end.discard_checkpoints)
    {
        statements.run(tx).await?;
        delete_run_checkpoints(tx, &commit.thread_id, &commit.run_id).await?;
        let status = ThreadStatus::at_rest(has_pending_nodes(tx, &commit.thread_id).await?);
        set_thread_status(tx, commit, status).await?;
    } else {
        heavy_poll(new_messages(&commit.checkpoints)).await;
        add_checkpoints(&mut statements, &commit.checkpoints);
        refuse_incomplete(&statements.run(tx).await?, &commit.checkpoints)?;
    }
    Ok(outcome)
}

/// Deletes a temporary thread. Its runs retain only the record of how they ended, without content.
pub(super) async fn delete_temporary_thread(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
    last: &RunId,
    completion: Option<RunCompletionData>,
) -> Result<(), DbErr> {
    let completion = completion.map(|completion| json_text(&completion.without_text()));
    let own = Expr::case(
        run::Column::RunId.eq(last.as_str()),
        Expr::value(completion),
    )
    .finally(Expr::value(Option::<String>::None));
    run::Entity::update_many()
        .col_expr(run::Column::KwargsJson, Expr::value("{}"))
        .col_expr(run::Column::CompletionJson, own.into())
        .col_expr(run::Column::RecipeJson, Expr::value(Option::<String>::None))
        .filter(run::Column::ThreadId.eq(thread.as_str()))
        .exec(tx)
        .await?;
    thread::Entity::delete_by_id(thread.as_str())
        .exec(tx)
        .await?;
    delete_feedback(tx, thread.as_str(), None).await?;
    delete_thread_events(tx, thread).await?;
    delete_thread_checkpoints(tx, thread).await
}

/// Sets the thread's status, unless it has other unfinished runs.
async fn set_thread_status(
    tx: &DatabaseTransaction,
    commit: &RunCommit,
    status: ThreadStatus,
) -> Result<(), DbErr> {
    let mut statements = StatementBatch::new(tx);
    statements.add(
        SET_THREAD_STATUS,
        [
            status.as_str().into(),
            commit.thread_id.as_str().into(),
            commit.run_id.as_str().into(),
        ],
    );
    statements.run(tx).await.map(drop)
}

pub(super) const SET_THREAD_STATUS: &str = "\
    UPDATE threads_meta SET status = ? WHERE thread_id = ? AND NOT EXISTS (\
        SELECT 1 FROM runs WHERE runs.thread_id = threads_meta.thread_id AND runs.run_id <> ? \
            AND runs.status IN ('pending', 'starting', 'running'))";
