//! Tasks in memory, for tests and embedders without persistence.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::ids::ThreadId;
use deerflow_runtime::runs::store::StoreError;
use parking_lot::Mutex;

use super::record::{ScheduledTask, TaskRun, TaskStatus};
use super::store::{MAX_ENDED_RUNS, TaskCreated, TaskStore, TaskUpdated};
use super::transitions::{Begun, Firing, advance, begin};

/// Tasks in memory. It knows neither threads nor accounts: every thread exists, and no
/// account is disabled.
#[derive(Debug, Default)]
pub struct InMemoryTaskStore(Mutex<Stored>);

#[derive(Debug, Default)]
struct Stored {
    tasks: BTreeMap<String, ScheduledTask>,
    runs: Vec<TaskRun>,
}

impl Stored {
    /// Deletes the oldest ended runs of a task. Runs are stored in the order of their firings.
    fn prune(&mut self, task: &str) {
        let is_ended = |run: &TaskRun| run.task_id == task && !run.status.is_active();
        let ended = self.runs.iter().filter(|run| is_ended(run)).count();
        let mut excess = ended.saturating_sub(MAX_ENDED_RUNS);
        self.runs.retain(|run| {
            let is_excess = excess > 0 && is_ended(run);
            excess -= usize::from(is_excess);
            !is_excess
        });
    }

    fn active(&self, task: &str) -> bool {
        self.runs
            .iter()
            .any(|run| run.task_id == task && run.status.is_active())
    }
}

#[async_trait]
impl TaskStore for InMemoryTaskStore {
    async fn create(&self, task: ScheduledTask, limit: u64) -> Result<TaskCreated, StoreError> {
        let tasks = &mut self.0.lock().tasks;
        let owned = tasks.values().filter(|other| other.user_id == task.user_id);
        if owned.count() as u64 >= limit {
            return Ok(TaskCreated::LimitReached);
        }
        tasks.insert(task.task_id.clone(), task);
        Ok(TaskCreated::New)
    }

    async fn get(&self, user: &str, task: &str) -> Result<Option<ScheduledTask>, StoreError> {
        let stored = self.0.lock();
        let found = stored.tasks.get(task).filter(|task| task.user_id == user);
        Ok(found.cloned())
    }

    async fn list(
        &self,
        user: &str,
        thread: Option<&ThreadId>,
    ) -> Result<Vec<ScheduledTask>, StoreError> {
        let stored = self.0.lock();
        let matching = stored.tasks.values().filter(|task| {
            task.user_id == user
                && thread.is_none_or(|thread| task.thread_id.as_ref() == Some(thread))
        });
        let mut tasks: Vec<ScheduledTask> = matching.cloned().collect();
        tasks.sort_by(|one, other| {
            (other.created_at, &other.task_id).cmp(&(one.created_at, &one.task_id))
        });
        Ok(tasks)
    }

    async fn update(&self, task: ScheduledTask) -> Result<TaskUpdated, StoreError> {
        let mut stored = self.0.lock();
        let current = stored
            .tasks
            .get_mut(&task.task_id)
            .filter(|current| current.user_id == task.user_id && current.version == task.version);
        let Some(current) = current else {
            return Ok(TaskUpdated::Outdated);
        };
        *current = ScheduledTask {
            version: task.version + 1,
            ..task
        };
        Ok(TaskUpdated::Stored)
    }

    async fn delete(&self, user: &str, task: &str) -> Result<bool, StoreError> {
        let mut stored = self.0.lock();
        let is_mine = stored
            .tasks
            .get(task)
            .is_some_and(|task| task.user_id == user);
        if is_mine {
            stored.tasks.remove(task);
            stored.runs.retain(|run| run.task_id != task);
        }
        Ok(is_mine)
    }

    async fn due(&self, at: DateTime<Utc>, limit: usize) -> Result<Vec<ScheduledTask>, StoreError> {
        let stored = self.0.lock();
        let is_due = |task: &&ScheduledTask| {
            task.status == TaskStatus::Enabled && task.next_run_at.is_some_and(|next| next <= at)
        };
        let mut due: Vec<ScheduledTask> = stored.tasks.values().filter(is_due).cloned().collect();
        due.sort_by(|one, other| {
            (one.next_run_at, &one.task_id).cmp(&(other.next_run_at, &other.task_id))
        });
        due.truncate(limit);
        Ok(due)
    }

    async fn begin(&self, mut run: TaskRun, firing: Option<Firing>) -> Result<Begun, StoreError> {
        let mut stored = self.0.lock();
        let has_active = stored.active(&run.task_id);
        let Some(task) = stored.tasks.get_mut(&run.task_id) else {
            return Ok(Begun::Gone);
        };
        let begun = begin(task, &mut run, firing, has_active);
        let is_stored = match begun {
            Begun::Queued => true,
            Begun::Busy => firing.is_some(),
            Begun::Gone => false,
        };
        if is_stored {
            task.version += 1;
            let task = run.task_id.clone();
            stored.runs.push(run);
            stored.prune(&task);
        }
        Ok(begun)
    }

    async fn advance(&self, seen: &TaskRun, run: TaskRun) -> Result<bool, StoreError> {
        let mut stored = self.0.lock();
        let Stored { tasks, runs } = &mut *stored;
        let current = runs.iter_mut().find(|current| {
            current.task_run_id == run.task_run_id
                && current.status == seen.status
                && current.claimed_at == seen.claimed_at
        });
        let (Some(current), Some(task)) = (current, tasks.get_mut(&run.task_id)) else {
            return Ok(false);
        };
        advance(task, seen, &run);
        task.version += 1;
        *current = run;
        Ok(true)
    }

    async fn active(&self, task: Option<&str>, limit: usize) -> Result<Vec<TaskRun>, StoreError> {
        let stored = self.0.lock();
        let matching = stored
            .runs
            .iter()
            .filter(|run| run.status.is_active() && task.is_none_or(|task| run.task_id == task));
        let mut runs: Vec<TaskRun> = matching.cloned().collect();
        runs.sort_by(|one, other| {
            (one.claimed_at, &one.task_run_id).cmp(&(other.claimed_at, &other.task_run_id))
        });
        runs.truncate(limit);
        Ok(runs)
    }

    async fn active_of(&self, user: &str) -> Result<Vec<TaskRun>, StoreError> {
        let stored = self.0.lock();
        let matching = |run: &&TaskRun| run.user_id == user && run.status.is_active();
        Ok(stored.runs.iter().filter(matching).cloned().collect())
    }

    async fn runs(
        &self,
        task: &str,
        limit: usize,
        offset: usize,
    ) -> Result<Vec<TaskRun>, StoreError> {
        let stored = self.0.lock();
        let of_task = stored.runs.iter().filter(|run| run.task_id == task);
        let mut runs: Vec<TaskRun> = of_task.cloned().collect();
        runs.sort_by(|one, other| {
            (other.created_at, &other.task_run_id).cmp(&(one.created_at, &one.task_run_id))
        });
        Ok(runs.into_iter().skip(offset).take(limit).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::InMemoryTaskStore;
    use crate::testkit::scheduled_tasks::TaskStores;

    async fn memory() -> TaskStores {
        TaskStores {
            tasks: Arc::new(InMemoryTaskStore::default()),
            threads: None,
            accounts: None,
            keep: Arc::new(()),
        }
    }

    crate::task_store_suite!([#[tokio::test]] memory);
}
