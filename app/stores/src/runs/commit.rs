//! What a run reaches becomes durable: guard, journal, checkpoints and end in one transaction.

use async_trait::async_trait;
use harness::ids::ThreadId;
use harness::runtime::runs::store::{CommitError, RunCommit, RunCommitStore, RunEnd, StoreError};
use harness::runtime::runs::{RunStatus, ThreadStatus};
use sea_orm::sea_query::Expr;
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, ExprTrait, PaginatorTrait, QueryFilter, Statement, Value,
};

use super::SqlRunStore;
use super::row::json_text;
use crate::checkpoints::{delete_run_checkpoints, delete_thread_checkpoints, is_anything_due, write_checkpoints};
use crate::entity::{micros, plain, run, thread};
use crate::error::{Fault, FromFault, read};
use crate::feedback::delete_feedback_of;
use crate::run_events::{append_events, delete_thread_events};
use crate::tx::TxError;

/// What a commit did besides what it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadLeft {
    /// The thread is still there.
    Stays,
    /// The run ended and its temporary thread went with it.
    Gone,
}

/// Why a commit changed nothing; its transaction is rolled back.
enum NotWritten {
    /// It was written before.
    Repeated(ThreadLeft),
    /// It may not be written.
    Refused(CommitError),
}

impl FromFault for NotWritten {
    fn from_fault(fault: Fault) -> Self {
        Self::Refused(CommitError::from_fault(fault))
    }
}

/// How a commit stands to the run's row.
#[derive(Debug)]
pub(super) enum Standing {
    /// Its sender owns the run, and it is new.
    New(RunStatus),
    /// It was written before.
    Repeated,
    /// It may not be written.
    Refused(CommitError),
}

impl Standing {
    fn of(row: Option<&run::Model>, commit: &RunCommit) -> Self {
        let Some(row) = row.filter(|row| row.thread_id == commit.thread_id.as_str()) else {
            return Self::Refused(CommitError::Gone(commit.run_id.clone()));
        };
        let Some(status) = RunStatus::parse(&row.status) else {
            let text = format!("run {} is damaged: unknown status {:?}", row.run_id, row.status);
            return Self::Refused(CommitError::Store(StoreError::Failed(text)));
        };
        let owned = row.attempt == i64::from(commit.attempt);
        if owned && commit.batch > 0 && number(commit) <= row.last_batch {
            Self::Repeated
        } else if status.is_terminal() {
            Self::Refused(CommitError::AlreadyTerminal(commit.run_id.clone()))
        } else if owned {
            Self::New(status)
        } else {
            Self::Refused(CommitError::OwnershipLost { run_id: commit.run_id.clone(), attempt: commit.attempt })
        }
    }
}

fn number(commit: &RunCommit) -> i64 {
    i64::try_from(commit.batch).unwrap_or(i64::MAX)
}

#[async_trait]
impl RunCommitStore for SqlRunStore {
    async fn commit(&self, commit: RunCommit) -> Result<(), CommitError> {
        self.commit_told(commit).await.map(|_| ())
    }
}

impl SqlRunStore {
    /// A commit that also says what became of the thread.
    pub(crate) async fn commit_told(&self, commit: RunCommit) -> Result<ThreadLeft, CommitError> {
        match self.db.writes().run(commit, |tx, commit| Box::pin(write(tx, commit))).await {
            Err(NotWritten::Repeated(left)) => Ok(left),
            Err(NotWritten::Refused(error)) => Err(error),
            Ok(left) => Ok(left),
        }
    }

    /// Whether the commit would be written as things stand, by its number and who sends it.
    pub(super) async fn standing(&self, commit: &RunCommit) -> Result<Standing, CommitError> {
        let row = read(run::Entity::find_by_id(commit.run_id.as_str()).one(self.db.reads()).await)?;
        Ok(Standing::of(row.as_ref(), commit))
    }
}

async fn write(tx: &DatabaseTransaction, commit: &RunCommit) -> Result<ThreadLeft, TxError<NotWritten>> {
    // The thread's row before the run's, as in admission.
    let left = match &commit.end {
        Some(end) => end_thread(tx, commit, end).await?,
        None => ThreadLeft::Stays,
    };
    guard(tx, commit).await?;
    if left == ThreadLeft::Gone {
        forget_text(tx, commit).await?;
        thread::Entity::delete_by_id(commit.thread_id.as_str()).exec(tx).await?;
        delete_feedback_of(tx, commit.thread_id.as_str(), None).await?;
        delete_thread_events(tx, &commit.thread_id).await?;
        delete_thread_checkpoints(tx, &commit.thread_id).await?;
        return Ok(left);
    }
    append_events(tx, &commit.events).await?;
    if commit.end.as_ref().is_some_and(|end| end.discard_checkpoints) {
        delete_run_checkpoints(tx, &commit.thread_id, &commit.run_id).await?;
        let status = ThreadStatus::at_rest(is_anything_due(tx, &commit.thread_id).await?);
        set_thread_status(tx, &commit.thread_id, status).await?;
    } else {
        write_checkpoints(tx, &commit.checkpoints).await?;
    }
    Ok(left)
}

/// Leaves of the run what says how it ended, and nothing of what was said in it.
async fn forget_text(tx: &DatabaseTransaction, commit: &RunCommit) -> Result<(), DbErr> {
    let completion = commit.end.as_ref().map(|end| json_text(&end.completion.clone().without_text()));
    run::Entity::update_many()
        .col_expr(run::Column::KwargsJson, Expr::value("{}"))
        .col_expr(run::Column::CompletionJson, Expr::value(completion))
        .filter(run::Column::RunId.eq(commit.run_id.as_str()))
        .exec(tx)
        .await?;
    Ok(())
}

async fn set_thread_status(tx: &DatabaseTransaction, thread: &ThreadId, status: ThreadStatus) -> Result<(), DbErr> {
    thread::Entity::update_many()
        .col_expr(thread::Column::Status, Expr::value(status.as_str()))
        .filter(thread::Column::ThreadId.eq(thread.as_str()))
        .exec(tx)
        .await?;
    Ok(())
}

const END_THREAD: &str = "\
    UPDATE threads_meta SET status = $2, updated_at = $3, state_updated_at = $3, display_name = COALESCE($4, display_name) \
    WHERE thread_id = $1 RETURNING temporary";

async fn end_thread(tx: &DatabaseTransaction, commit: &RunCommit, end: &RunEnd) -> Result<ThreadLeft, TxError<NotWritten>> {
    let values: [Value; 4] = [
        commit.thread_id.as_str().into(),
        end.thread_status.as_str().into(),
        micros(commit.at).into(),
        end.title.as_deref().map(plain).into(),
    ];
    let row = tx.query_one_raw(Statement::from_sql_and_values(tx.get_database_backend(), END_THREAD, values)).await?;
    let temporary = row.map(|row| row.try_get_by_index::<bool>(0)).transpose()?;
    Ok(if temporary == Some(true) { ThreadLeft::Gone } else { ThreadLeft::Stays })
}

/// Writes the run's row, if this attempt still owns it and the step is legal from where it is.
async fn guard(tx: &DatabaseTransaction, commit: &RunCommit) -> Result<(), TxError<NotWritten>> {
    let mut update = run::Entity::update_many()
        .col_expr(run::Column::UpdatedAt, Expr::value(micros(commit.at)))
        .filter(run::Column::RunId.eq(commit.run_id.as_str()))
        .filter(run::Column::ThreadId.eq(commit.thread_id.as_str()))
        .filter(run::Column::Attempt.eq(i64::from(commit.attempt)))
        .filter(run::Column::Status.is_in(legal_before(commit).map(RunStatus::as_str)));
    let gives_back = commit.end.is_none() && commit.advance == Some(RunStatus::Pending);
    if commit.batch > 0 {
        // The next attempt counts anew.
        let last_batch = if gives_back { 0 } else { number(commit) };
        update = update.filter(run::Column::LastBatch.lt(number(commit))).col_expr(run::Column::LastBatch, Expr::value(last_batch));
    } else if gives_back {
        update = update.col_expr(run::Column::LastBatch, Expr::value(0_i64));
    }
    if let Some(end) = &commit.end {
        update = update
            .col_expr(run::Column::Status, Expr::value(end.status.as_str()))
            .col_expr(run::Column::Error, Expr::value(end.error.as_deref().map(plain)))
            .col_expr(run::Column::StopReason, Expr::value(end.stop_reason.as_deref().map(plain)))
            .col_expr(run::Column::CompletionJson, Expr::value(json_text(&end.completion)));
    } else if let Some(next) = commit.advance {
        update = update.col_expr(run::Column::Status, Expr::value(next.as_str()));
        if gives_back {
            // Given back: who had it must not write any more.
            update = update.col_expr(run::Column::Attempt, Expr::col(run::Column::Attempt).add(1));
        }
    }
    if update.exec(tx).await?.rows_affected == 1 {
        return Ok(());
    }
    Err(TxError::Refused(why_not(tx, commit).await?))
}

/// The statuses from which the commit's steps are legal.
fn legal_before(commit: &RunCommit) -> impl Iterator<Item = RunStatus> {
    let ends = commit.end.as_ref().is_none_or(|end| end.status.is_terminal());
    let steps: Vec<RunStatus> = commit.advance.into_iter().chain(commit.end.as_ref().map(|end| end.status)).collect();
    RunStatus::ALL
        .into_iter()
        .filter(move |from| ends && !from.is_terminal() && steps.iter().try_fold(*from, |at, to| at.advance(*to)).is_ok())
}

async fn why_not(tx: &DatabaseTransaction, commit: &RunCommit) -> Result<NotWritten, TxError<NotWritten>> {
    let row = run::Entity::find_by_id(commit.run_id.as_str()).one(tx).await?;
    Ok(match Standing::of(row.as_ref(), commit) {
        Standing::Repeated => NotWritten::Repeated(thread_left(tx, commit).await?),
        Standing::Refused(error) => NotWritten::Refused(error),
        Standing::New(status) => {
            let to = commit.end.as_ref().map(|end| end.status).or(commit.advance).unwrap_or(status);
            let text = format!("run {} cannot go from {status} to {to}", commit.run_id);
            NotWritten::Refused(CommitError::Store(StoreError::Failed(text)))
        }
    })
}

/// What a commit that was written before left of the thread.
async fn thread_left(tx: &DatabaseTransaction, commit: &RunCommit) -> Result<ThreadLeft, DbErr> {
    let there = thread::Entity::find_by_id(commit.thread_id.as_str()).count(tx).await? > 0;
    Ok(if commit.end.is_some() && !there { ThreadLeft::Gone } else { ThreadLeft::Stays })
}
