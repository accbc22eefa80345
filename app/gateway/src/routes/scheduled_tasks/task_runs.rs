//! Creates and reads the runs of scheduled tasks.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_domain::scheduled_tasks::{
    RunProgress, ScheduledTask, StartRefusal, TaskFirings, TaskRun, TaskRunStatus, TaskRunner,
};
use harness::quota::Quota;
use harness::runtime::actor_context::{ActorContext, scope};
use harness::runtime::runs::store::{AdmitError, StoreError};
use harness::runtime::runs::{RunError, RunRecord, RunStatus};
use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::requests::RunTarget;
use crate::routes::runs::spec_for;
use crate::state::GatewayState;

/// Assistant of all scheduled tasks.
const ASSISTANT: &str = "lead_agent";

/// Creates runs by the same rules as DeerFlow's routes.
#[derive(Debug, Clone)]
pub struct TaskRuns(Arc<GatewayState>);

impl TaskRuns {
    /// Creates a runner over the gateway's shared state.
    pub fn new(state: Arc<GatewayState>) -> Self {
        Self(state)
    }

    /// Returns the service that fires tasks over the gateway's shared state.
    pub fn firings(state: &Arc<GatewayState>) -> TaskFirings {
        TaskFirings::new(
            state.schedules.tasks.clone(),
            Arc::new(Self::new(state.clone())),
            state.process.clock.clone(),
            state.process.ids.clone(),
        )
    }

    async fn make(&self, task: &ScheduledTask, run: &TaskRun) -> Result<(), ApiError> {
        // A repeated start may follow long after its firing.
        let accounts = &self.0.security.sign_in.stores.accounts;
        let account = accounts.find(&task.user_id).await?;
        if account.is_some_and(|account| account.disabled_at.is_some()) {
            let reason = "the account of the task's user is disabled";
            return Err(ApiError::Forbidden(reason.to_owned()));
        }
        let (target, body) = request_of(task, run);
        let mut spec = spec_for(&self.0, Dialect::DeerFlow, &target, body).await?;
        // Nobody reads a question of the run.
        spec.config
            .options
            .insert("non_interactive".to_owned(), true.into());
        spec.run_id = Some(run.run_id.clone());
        match self.0.runs.create_background(spec).await {
            Ok(_) | Err(RunError::Admit(AdmitError::RunExists(_))) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the target and the body of a task's run. The thread of a fresh run is created with it.
fn request_of(task: &ScheduledTask, run: &TaskRun) -> (RunTarget, Map<String, Value>) {
    let mut body = Map::from_iter([
        ("assistant_id".to_owned(), ASSISTANT.into()),
        (
            "input".to_owned(),
            json!({ "messages": [{ "type": "human", "content": task.prompt }] }),
        ),
        (
            "metadata".to_owned(),
            json!({
                "scheduled_task_id": run.task_id,
                "scheduled_task_run_id": run.task_run_id,
                "scheduled_trigger": run.trigger.as_str(),
            }),
        ),
        ("multitask_strategy".to_owned(), "reject".into()),
        ("on_disconnect".to_owned(), "continue".into()),
    ]);
    if task.thread_id.as_ref() == Some(&run.thread_id) {
        return (RunTarget::Thread(run.thread_id.clone()), body);
    }
    let configurable = json!({ "configurable": { "thread_id": run.thread_id } });
    body.insert("config".to_owned(), configurable);
    (RunTarget::Stateless, body)
}

/// Returns the progress of a run. Pure.
fn progress_of(record: RunRecord) -> RunProgress {
    let status = match record.status {
        RunStatus::Pending | RunStatus::Starting | RunStatus::Running => {
            return RunProgress::Unfinished;
        }
        RunStatus::Success => TaskRunStatus::Success,
        RunStatus::Interrupted => TaskRunStatus::Interrupted,
        RunStatus::Error | RunStatus::Timeout => TaskRunStatus::Failed,
    };
    RunProgress::Ended {
        status,
        error: record.error,
        at: record.updated_at,
    }
}

fn actor_of(user: &str) -> ActorContext {
    ActorContext {
        auth_source: Some("scheduled_task".to_owned()),
        ..ActorContext::user(user)
    }
}

#[async_trait]
impl TaskRunner for TaskRuns {
    async fn start(&self, task: &ScheduledTask, run: &TaskRun) -> Result<(), StartRefusal> {
        let made = scope(actor_of(&task.user_id), self.make(task, run)).await;
        made.map_err(|error| match error {
            ApiError::ThreadBusy(_) | ApiError::QueueFull(_) => {
                StartRefusal::Busy(error.to_string())
            }
            ApiError::QuotaExceeded(exceeded) if exceeded.quota == Quota::QueuedRuns => {
                StartRefusal::Busy(error.to_string())
            }
            ApiError::Unavailable(_) | ApiError::NotWritable(_) | ApiError::Internal(_) => {
                StartRefusal::Unavailable(error.to_string())
            }
            other => StartRefusal::Refused(other.to_string()),
        })
    }

    async fn progress(&self, run: &TaskRun) -> Result<RunProgress, StoreError> {
        let read = self.0.runs.get_run(Some(&run.thread_id), &run.run_id);
        match scope(actor_of(&run.user_id), read).await {
            Ok(Some(record)) => Ok(progress_of(record)),
            Ok(None) | Err(RunError::NotFound(_)) => Ok(RunProgress::Missing),
            Err(RunError::Store(error)) => Err(error),
            Err(error) => Err(StoreError::Unavailable(error.to_string())),
        }
    }
}
