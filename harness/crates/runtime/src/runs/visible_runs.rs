//! Reads the stored runs that the bound actor may see, updated from the runs that execute in this
//! process.

use crate::definition::{RunCompletionData, RunRecord, RunStatus};
use crate::kernel::{RunError, Runtime};
use crate::ports::{RunListQuery, UnfinishedRun};
use deerflow_core::actor_context::{self, Owner};
use deerflow_core::ids::{RunId, ThreadId};

/// Returns the bound actor's user id as owner, or the default user if no actor is bound.
pub(super) fn owner() -> Owner {
    Owner::User(actor_context::effective_user_id())
}

pub(super) async fn get(
    thread: Option<&ThreadId>,
    run: &RunId,
    runtime: &Runtime,
) -> Result<Option<RunRecord>, RunError> {
    let stored = runtime.ports.query.get(run, &owner()).await?;
    Ok(stored
        .filter(|record| thread.is_none_or(|thread| record.thread_id == *thread))
        .map(|record| overlay(record, runtime)))
}

/// Returns a run, or an error if it does not exist or belongs to another user.
pub(super) async fn find(
    thread: Option<&ThreadId>,
    run: &RunId,
    runtime: &Runtime,
) -> Result<RunRecord, RunError> {
    get(thread, run, runtime)
        .await?
        .ok_or_else(|| RunError::NotFound(run.clone()))
}

pub(super) async fn list(
    thread: &ThreadId,
    query: &RunListQuery,
    runtime: &Runtime,
) -> Result<Vec<RunRecord>, RunError> {
    let stored = runtime.ports.query.list(thread, query, &owner()).await?;
    Ok(stored
        .into_iter()
        .map(|record| overlay(record, runtime))
        .collect())
}

pub(super) async fn unfinished(
    thread: Option<&ThreadId>,
    runtime: &Runtime,
) -> Result<Vec<UnfinishedRun>, RunError> {
    let mut stored = runtime.ports.query.standing(thread, &owner()).await?;
    for run in &mut stored {
        run.status = runtime
            .registry
            .active(&run.run_id)
            .map_or(run.status, |active| active.status());
    }
    Ok(stored)
}

/// Updates a record from the handle of the run in this process: the status `running` is stored with
/// a delay.
fn overlay(mut record: RunRecord, runtime: &Runtime) -> RunRecord {
    let active = runtime
        .registry
        .active(&record.run_id)
        .map(|active| active.status());
    if record.status == RunStatus::Starting && active == Some(RunStatus::Running) {
        record.status = RunStatus::Running;
    }
    if !record.status.is_terminal() {
        record.completion = RunCompletionData::default();
    }
    record
}
