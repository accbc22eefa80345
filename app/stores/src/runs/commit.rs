//! What a run reaches becomes durable: guard, journal, checkpoints and end in one transaction.

use async_trait::async_trait;
use harness::ids::{RunId, ThreadId};
use harness::runtime::compute::heavy_poll;
use harness::runtime::runs::store::{CommitError, RunCommit, RunCommitStore, RunEnd, StoreError};
use harness::runtime::runs::{RunCompletionData, RunStatus, ThreadStatus};
use metrics::histogram;
use sea_orm::sea_query::{Expr, Query};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, EntityTrait, ExprTrait,
    PaginatorTrait, QueryFilter, QueryResult, QueryTrait, UpdateMany,
};

use tokio::time::Instant;

use super::SqlRunStore;
use super::calls::add_calls;
use super::row::json_text;
use crate::checkpoints::{
    add_checkpoints, delete_run_checkpoints, delete_thread_checkpoints, is_anything_due,
    new_messages, refuse_incomplete,
};
use crate::entity::{micros, plain, run, short_title, thread};
use crate::error::{Fault, FromFault, read};
use crate::feedback::delete_feedback_of;
use crate::nodes::now_of;
use crate::requests::keep_values;
use crate::run_events::{add_events, delete_thread_events};
use crate::script::{Script, tagged};
use crate::space::Class;
use crate::tx::TxError;
use crate::usage::add_usage;
use crate::webhooks::keep_call;

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
            let text = format!(
                "run {} is damaged: unknown status {:?}",
                row.run_id, row.status
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

/// Whether another may take the run after it.
fn gives_back(commit: &RunCommit) -> bool {
    commit.end.is_none() && commit.advance == Some(RunStatus::Pending)
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
        let since = Instant::now();
        let class = if commit.end.is_some() || gives_back(&commit) {
            Class::Release
        } else {
            Class::Progress
        };
        let written = self
            .db
            .writes()
            .run_as(class, commit, |tx, commit| Box::pin(write(tx, commit)))
            .await;
        histogram!("deerflow_commit_seconds").record(since.elapsed());
        match written {
            Err(NotWritten::Repeated(left)) => Ok(left),
            Err(NotWritten::Refused(error)) => Err(error),
            Ok(left) => Ok(left),
        }
    }

    /// Whether the commit would be written as things stand, by its number and who sends it.
    pub(super) async fn standing(&self, commit: &RunCommit) -> Result<Standing, CommitError> {
        let row = read(
            run::Entity::find_by_id(commit.run_id.as_str())
                .one(self.db.reads())
                .await,
        )?;
        Ok(Standing::of(row.as_ref(), commit))
    }
}

async fn write(
    tx: &DatabaseTransaction,
    commit: &RunCommit,
) -> Result<ThreadLeft, TxError<NotWritten>> {
    let left = guard(tx, commit).await?;
    if let Some(call) = commit.end.as_ref().and_then(|end| end.webhook.as_ref()) {
        keep_call(tx, commit.run_id.as_str(), micros(commit.at), call).await?;
    }
    let mut script = Script::new(tx);
    add_calls(&mut script, commit);
    if let Some(end) = &commit.end {
        add_usage(&mut script, commit.run_id.as_str(), &end.completion);
    }
    if let Some(values) = commit.end.as_ref().and_then(|end| end.kept_values.as_ref()) {
        keep_values(&mut script, &commit.run_id, values);
    }
    if left == ThreadLeft::Gone {
        script.run(tx).await?;
        let completion = commit.end.as_ref().map(|end| end.completion.clone());
        forget_thread(tx, &commit.thread_id, &commit.run_id, completion).await?;
        return Ok(left);
    }
    add_events(&mut script, &commit.events);
    if commit
        .end
        .as_ref()
        .is_some_and(|end| end.discard_checkpoints)
    {
        script.run(tx).await?;
        delete_run_checkpoints(tx, &commit.thread_id, &commit.run_id).await?;
        let status = ThreadStatus::at_rest(is_anything_due(tx, &commit.thread_id).await?);
        rest_thread(tx, commit, status).await?;
    } else {
        heavy_poll(new_messages(&commit.checkpoints)).await;
        add_checkpoints(&mut script, &commit.checkpoints);
        refuse_incomplete(&script.run(tx).await?, &commit.checkpoints)?;
    }
    Ok(left)
}

/// Removes a temporary thread, and leaves of its runs what says how they ended and nothing of what was said in them.
pub(super) async fn forget_thread(
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
        .filter(run::Column::ThreadId.eq(thread.as_str()))
        .exec(tx)
        .await?;
    thread::Entity::delete_by_id(thread.as_str())
        .exec(tx)
        .await?;
    delete_feedback_of(tx, thread.as_str(), None).await?;
    delete_thread_events(tx, thread).await?;
    delete_thread_checkpoints(tx, thread).await
}

/// The thread's status, unless others of its runs are not over.
async fn rest_thread(
    tx: &DatabaseTransaction,
    commit: &RunCommit,
    status: ThreadStatus,
) -> Result<(), DbErr> {
    let mut script = Script::new(tx);
    script.add(
        REST_THREAD,
        [
            status.as_str().into(),
            commit.thread_id.as_str().into(),
            commit.run_id.as_str().into(),
        ],
    );
    script.run(tx).await.map(drop)
}

pub(super) const REST_THREAD: &str = "\
    UPDATE threads_meta SET status = ? WHERE thread_id = ? AND NOT EXISTS (\
        SELECT 1 FROM runs WHERE runs.thread_id = threads_meta.thread_id AND runs.run_id <> ? \
            AND runs.status IN ('pending', 'starting', 'running'))";

const LOCK_THREAD: &str = "SELECT 'locked' FROM threads_meta WHERE thread_id = ? FOR UPDATE";

const END_THREAD: &str = "\
    UPDATE threads_meta SET updated_at = ?, state_updated_at = ?, display_name = COALESCE(?, display_name), status = CASE WHEN EXISTS (\
        SELECT 1 FROM runs WHERE runs.thread_id = threads_meta.thread_id AND runs.run_id <> ? \
            AND runs.status IN ('pending', 'starting', 'running')) THEN 'busy' ELSE ? END \
    WHERE thread_id = ? RETURNING 'thread', temporary, status";

fn end_thread(script: &mut Script, commit: &RunCommit, end: &RunEnd, backend: DbBackend) {
    let thread = commit.thread_id.as_str();
    if backend == DbBackend::Postgres {
        // Locked by a statement of its own: the next one then sees which runs others admitted while this waited.
        script.add(LOCK_THREAD, [thread.into()]);
    }
    let title = end.title.as_deref().map(short_title);
    let (run, status) = (commit.run_id.as_str(), end.thread_status.as_str());
    let at = micros(commit.at);
    script.add(
        END_THREAD,
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

/// Writes the rows of thread and run, if this attempt still owns the run and the step is legal from where it is.
async fn guard(
    tx: &DatabaseTransaction,
    commit: &RunCommit,
) -> Result<ThreadLeft, TxError<NotWritten>> {
    let mut script = Script::new(tx);
    // The thread's row before the run's, as in admission.
    if let Some(end) = &commit.end {
        end_thread(&mut script, commit, end, tx.get_database_backend());
    }
    let mut update = guarded_update(commit, tx.get_database_backend()).into_query();
    update.returning(Query::returning().expr(Expr::val("run")));
    script.add_built(&update);
    let rows = script.run(tx).await?;
    if tagged(&rows, "run").is_none() {
        return Err(TxError::Refused(why_not(tx, commit).await?));
    }
    let left = |row: &QueryResult| {
        Ok::<_, DbErr>((
            row.try_get_by_index::<bool>(1)?,
            row.try_get_by_index::<String>(2)?,
        ))
    };
    let left = tagged(&rows, "thread").map(left).transpose()?;
    // A temporary thread goes with the last of its runs.
    Ok(
        if left.is_some_and(|(temporary, status)| temporary && status != "busy") {
            ThreadLeft::Gone
        } else {
            ThreadLeft::Stays
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
    let gives_back = gives_back(commit);
    if commit.batch > 0 {
        // The next attempt counts anew.
        let last_batch = if gives_back { 0 } else { number(commit) };
        update = update
            .filter(run::Column::LastBatch.lt(number(commit)))
            .col_expr(run::Column::LastBatch, Expr::value(last_batch));
    } else if gives_back {
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
            .col_expr(run::Column::RecipeJson, Expr::value(Option::<String>::None))
            .col_expr(run::Column::Owner, Expr::value(Option::<String>::None))
            .col_expr(
                run::Column::CompletionJson,
                Expr::value(json_text(&end.completion)),
            );
    } else if let Some(next) = commit.advance {
        update = update.col_expr(run::Column::Status, Expr::value(next.as_str()));
        if next == RunStatus::Running {
            let since = format!("COALESCE(started_at, {})", now_of(backend));
            update = update.col_expr(run::Column::StartedAt, Expr::cust(since));
        }
        if gives_back {
            // Given back: who had it must not write any more.
            update = update.col_expr(run::Column::Attempt, Expr::col(run::Column::Attempt).add(1));
            update = update.col_expr(run::Column::Owner, Expr::value(Option::<String>::None));
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

/// As literals: SQLite plans a statement anew each time when a bound value may decide whether a partial index serves it.
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

/// The statuses from which the commit's steps are legal.
fn legal_before(commit: &RunCommit) -> impl Iterator<Item = RunStatus> {
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

async fn why_not(
    tx: &DatabaseTransaction,
    commit: &RunCommit,
) -> Result<NotWritten, TxError<NotWritten>> {
    let row = run::Entity::find_by_id(commit.run_id.as_str())
        .one(tx)
        .await?;
    Ok(match Standing::of(row.as_ref(), commit) {
        Standing::Repeated => NotWritten::Repeated(thread_left(tx, commit).await?),
        Standing::Refused(error) => NotWritten::Refused(error),
        Standing::New(status) => {
            let to = commit
                .end
                .as_ref()
                .map(|end| end.status)
                .or(commit.advance)
                .unwrap_or(status);
            let text = format!("run {} cannot go from {status} to {to}", commit.run_id);
            NotWritten::Refused(CommitError::Store(StoreError::Failed(text)))
        }
    })
}

/// What a commit that was written before left of the thread.
async fn thread_left(tx: &DatabaseTransaction, commit: &RunCommit) -> Result<ThreadLeft, DbErr> {
    let there = thread::Entity::find_by_id(commit.thread_id.as_str())
        .count(tx)
        .await?
        > 0;
    Ok(if commit.end.is_some() && !there {
        ThreadLeft::Gone
    } else {
        ThreadLeft::Stays
    })
}
