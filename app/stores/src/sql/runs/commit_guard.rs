//! Guard of a commit: its attempt must own the run, it must be new, and its status steps must be
//! legal.

use deerflow_runtime::runs::RunStatus;
use deerflow_runtime::runs::store::{CommitError, NewRunEvent, RunCommit, RunEnd, StoreError};
use sea_orm::sea_query::{Expr, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, EntityTrait, ExprTrait,
    PaginatorTrait, QueryFilter, QueryResult, QueryTrait, UpdateMany,
};

use super::commit_outcome::{CommitRefusal, ThreadOutcome};
use crate::db::clock::now_of;
use crate::db::entity::{micros, plain, run, short_title, thread};
use crate::db::json::json_text;
use crate::db::statement_batch::{StatementBatch, tagged};
use crate::db::tx::TxError;

/// Result of checking a commit against the run's row.
#[derive(Debug)]
pub(super) enum CommitCheck {
    /// Its attempt owns the run, and it is new.
    New(RunStatus),
    /// It was committed before.
    Repeated,
    /// It may not be committed.
    Refused(CommitError),
}

/// Columns of a run that decide about a commit.
#[derive(Debug)]
pub(super) struct RunState {
    pub(super) thread_id: String,
    pub(super) status: String,
    pub(super) attempt: i64,
    pub(super) last_batch: i64,
}

impl From<run::Model> for RunState {
    fn from(row: run::Model) -> Self {
        Self {
            thread_id: row.thread_id,
            status: row.status,
            attempt: row.attempt,
            last_batch: row.last_batch,
        }
    }
}

impl CommitCheck {
    pub(super) fn of(row: Option<&RunState>, commit: &RunCommit) -> Self {
        let Some(row) = row.filter(|row| row.thread_id == commit.thread_id.as_str()) else {
            return Self::Refused(CommitError::Gone(commit.run_id.clone()));
        };
        let Some(status) = RunStatus::parse(&row.status) else {
            let text = format!(
                "run {} is damaged: unknown status {:?}",
                commit.run_id, row.status
            );
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
            Self::Refused(CommitError::OwnershipLost {
                run_id: commit.run_id.clone(),
                attempt: commit.attempt,
            })
        }
    }
}

/// Returns `true` if the commit releases the run to other nodes.
pub(super) fn releases_run(commit: &RunCommit) -> bool {
    commit.end.is_none() && commit.advance == Some(RunStatus::Pending)
}

/// Returns `true` if the commit needs only the statements of a usual run.
pub(super) fn is_usual(commit: &RunCommit) -> bool {
    let end = commit.end.as_ref();
    let own = |event: &NewRunEvent| event.thread_id == commit.thread_id;
    !releases_run(commit)
        && !end.is_some_and(|end| end.webhook.is_some() || end.discard_checkpoints)
        && commit.events.iter().all(own)
}

pub(super) fn number(commit: &RunCommit) -> i64 {
    i64::try_from(commit.batch).unwrap_or(i64::MAX)
}

const LOCK_THREAD: &str = "SELECT 'locked' FROM threads_meta WHERE thread_id = ? FOR UPDATE";

macro_rules! end_thread {
    ($title:literal) => {
        concat!(
            "UPDATE threads_meta SET updated_at = ?, state_updated_at = ?, ",
            $title,
            "status = CASE WHEN EXISTS (\
                SELECT 1 FROM runs WHERE runs.thread_id = threads_meta.thread_id AND runs.run_id <> ? \
                    AND runs.status IN ('pending', 'starting', 'running')) THEN 'busy' ELSE ? END \
            WHERE thread_id = ?"
        )
    };
}

/// Ends the activity of a thread, and changes its title.
pub(super) const END_THREAD: &str = end_thread!("display_name = ?, ");

/// Ends the activity of a thread. SQLite writes the indexes of all columns that a statement sets, so
/// a title that does not change is not set.
pub(super) const END_THREAD_WITH_ITS_TITLE: &str = end_thread!("");

/// Ends the activity of a thread, and returns its row. SQLite creates a temporary table for the
/// returned row and a journal for the statement, so prepared commits use [`END_THREAD`].
const END_AND_RETURN_THREAD: &str = concat!(
    end_thread!("display_name = COALESCE(?, display_name), "),
    " RETURNING 'thread', temporary, status"
);

fn end_thread(
    statements: &mut StatementBatch,
    commit: &RunCommit,
    end: &RunEnd,
    backend: DbBackend,
) {
    let thread = commit.thread_id.as_str();
    if backend == DbBackend::Postgres {
        // Locked by a separate statement: the next one must see the runs that other transactions
        // admitted while this one waited for the lock.
        statements.add(LOCK_THREAD, [thread.into()]);
    }
    let title = end.title.as_deref().map(short_title);
    let (run, status) = (commit.run_id.as_str(), end.thread_status.as_str());
    let at = micros(commit.at);
    statements.add(
        END_AND_RETURN_THREAD,
        [
            at.into(),
            at.into(),
            title.into(),
            run.into(),
            status.into(),
            thread.into(),
        ],
    );
}

/// Updates the rows of the thread and the run, if this attempt still owns the run and the status
/// step is legal.
pub(super) async fn guard(
    tx: &DatabaseTransaction,
    commit: &RunCommit,
) -> Result<ThreadOutcome, TxError<CommitRefusal>> {
    let mut statements = StatementBatch::new(tx);
    // The thread's row is locked before the run's, as in admission.
    if let Some(end) = &commit.end {
        end_thread(&mut statements, commit, end, tx.get_database_backend());
    }
    let mut update = guarded_update(commit, tx.get_database_backend()).into_query();
    update.returning(Query::returning().expr(Expr::val("run")));
    statements.add_built(&update);
    let rows = statements.run(tx).await?;
    if tagged(&rows, "run").is_none() {
        return Err(TxError::Refused(refusal_reason(tx, commit).await?));
    }
    let outcome = |row: &QueryResult| {
        Ok::<_, DbErr>((
            row.try_get_by_index::<bool>(1)?,
            row.try_get_by_index::<String>(2)?,
        ))
    };
    let outcome = tagged(&rows, "thread").map(outcome).transpose()?;
    // A temporary thread is deleted with its last run.
    Ok(
        if outcome.is_some_and(|(temporary, status)| temporary && status != "busy") {
            ThreadOutcome::Deleted
        } else {
            ThreadOutcome::Retained
        },
    )
}

fn guarded_update(commit: &RunCommit, backend: DbBackend) -> UpdateMany<run::Entity> {
    let mut update = run::Entity::update_many()
        .col_expr(run::Column::UpdatedAt, Expr::value(micros(commit.at)))
        .filter(run::Column::RunId.eq(commit.run_id.as_str()))
        .filter(run::Column::ThreadId.eq(commit.thread_id.as_str()))
        .filter(run::Column::Attempt.eq(i64::from(commit.attempt)))
        .filter(is_legal_before(commit));
    let releases_run = releases_run(commit);
    if commit.batch > 0 {
        // The next attempt counts its commits from zero.
        let last_batch = if releases_run { 0 } else { number(commit) };
        update = update
            .filter(run::Column::LastBatch.lt(number(commit)))
            .col_expr(run::Column::LastBatch, Expr::value(last_batch));
    } else if releases_run {
        update = update.col_expr(run::Column::LastBatch, Expr::value(0_i64));
    }
    if let Some(end) = &commit.end {
        update = update
            .col_expr(run::Column::Status, Expr::value(end.status.as_str()))
            .col_expr(
                run::Column::Error,
                Expr::value(end.error.as_deref().map(plain)),
            )
            .col_expr(
                run::Column::ErrorName,
                Expr::value(end.error_name.as_deref().map(plain)),
            )
            .col_expr(
                run::Column::StopReason,
                Expr::value(end.stop_reason.as_deref().map(plain)),
            )
            .col_expr(run::Column::Owner, Expr::value(Option::<String>::None))
            .col_expr(
                run::Column::CompletionJson,
                Expr::value(json_text(&end.completion)),
            );
        if !end.is_poisoned() {
            update = update.col_expr(run::Column::RecipeJson, Expr::value(Option::<String>::None));
        }
    } else if let Some(next) = commit.advance {
        update = update.col_expr(run::Column::Status, Expr::value(next.as_str()));
        if next == RunStatus::Running {
            let since = format!("COALESCE(started_at, {})", now_of(backend));
            update = update.col_expr(run::Column::StartedAt, Expr::cust(since));
        }
        if releases_run {
            // Released: the new attempt number fences off the previous owner.
            update = update.col_expr(run::Column::Attempt, Expr::col(run::Column::Attempt).add(1));
            update = update.col_expr(run::Column::Owner, Expr::value(Option::<String>::None));
            if commit.is_loss {
                update =
                    update.col_expr(run::Column::Losses, Expr::col(run::Column::Losses).add(1));
            }
        }
    }
    if let Some(so_far) = commit.so_far.as_ref().filter(|_| commit.end.is_none()) {
        update = update.col_expr(
            run::Column::CompletionJson,
            Expr::value(json_text(&**so_far)),
        );
    }
    update
}

/// Builds the condition that the current status permits the commit. The statuses are literals,
/// because SQLite plans a statement at each use if a bound value may decide whether a partial index
/// applies.
fn is_legal_before(commit: &RunCommit) -> Expr {
    let statuses: Vec<_> = legal_before(commit)
        .map(|status| format!("'{status}'"))
        .collect();
    Expr::cust(if statuses.is_empty() {
        "FALSE".to_owned()
    } else {
        format!("runs.status IN ({})", statuses.join(", "))
    })
}

/// Returns `true` if the commit's steps are legal from this status.
pub(super) fn permits(status: RunStatus, commit: &RunCommit) -> bool {
    legal_before(commit).any(|legal| legal == status)
}

/// Returns the statuses from which the commit's steps are legal.
pub(super) fn legal_before(commit: &RunCommit) -> impl Iterator<Item = RunStatus> {
    let ends = commit
        .end
        .as_ref()
        .is_none_or(|end| end.status.is_terminal());
    let steps: Vec<RunStatus> = commit
        .advance
        .into_iter()
        .chain(commit.end.as_ref().map(|end| end.status))
        .collect();
    RunStatus::ALL.into_iter().filter(move |from| {
        ends && !from.is_terminal()
            && steps
                .iter()
                .try_fold(*from, |at, to| at.advance(*to))
                .is_ok()
    })
}

async fn refusal_reason(
    tx: &DatabaseTransaction,
    commit: &RunCommit,
) -> Result<CommitRefusal, TxError<CommitRefusal>> {
    let row = run::Entity::find_by_id(commit.run_id.as_str())
        .one(tx)
        .await?;
    Ok(
        match CommitCheck::of(row.map(RunState::from).as_ref(), commit) {
            CommitCheck::Repeated => CommitRefusal::Repeated(thread_outcome(tx, commit).await?),
            CommitCheck::Refused(error) => CommitRefusal::Refused(error),
            CommitCheck::New(status) => {
                let to = commit
                    .end
                    .as_ref()
                    .map(|end| end.status)
                    .or(commit.advance)
                    .unwrap_or(status);
                let text = format!("run {} cannot go from {status} to {to}", commit.run_id);
                CommitRefusal::Refused(CommitError::Store(StoreError::Failed(text)))
            }
        },
    )
}

/// Returns the effect on the thread of a commit that was committed before.
async fn thread_outcome(
    tx: &DatabaseTransaction,
    commit: &RunCommit,
) -> Result<ThreadOutcome, DbErr> {
    let exists = thread::Entity::find_by_id(commit.thread_id.as_str())
        .count(tx)
        .await?
        > 0;
    Ok(if commit.end.is_some() && !exists {
        ThreadOutcome::Deleted
    } else {
        ThreadOutcome::Retained
    })
}
