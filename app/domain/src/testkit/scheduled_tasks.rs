//! Contract suite of task stores.

mod firing;

use std::sync::Arc;

use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_runtime::testkit::{Keep, USER, at, thread};
use serde_json::Map;
use uuid::Uuid;

use crate::accounts::AccountStore;
use crate::scheduled_tasks::{
    ContextMode, ScheduledTask, TaskCreated, TaskRun, TaskRunStatus, TaskSchedule, TaskStatus,
    TaskStore, TaskTrigger, TaskUpdated,
};
use crate::threads::{Deleted, NewThread, ThreadStore};

pub use firing::{
    due_tasks_are_enabled_and_in_order, end_of_a_single_run_ends_its_task,
    firing_during_an_active_run_is_skipped, missed_task_of_disabled_account_is_due_again,
    oldest_ended_task_runs_are_deleted, run_changes_its_task_once, task_firing_is_stored_once,
    task_runs_are_paged_newest_first,
};

/// Generates one test per requirement of task stores.
#[macro_export]
macro_rules! task_store_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::scheduled_tasks]
            created_task_is_returned_unchanged
            tasks_of_other_user_are_hidden
            tasks_of_a_user_are_limited
            outdated_task_update_is_refused
            tasks_are_deleted_with_their_thread
            due_tasks_are_enabled_and_in_order
            missed_task_of_disabled_account_is_due_again
            task_firing_is_stored_once
            firing_during_an_active_run_is_skipped
            run_changes_its_task_once
            end_of_a_single_run_ends_its_task
            task_runs_are_paged_newest_first
            oldest_ended_task_runs_are_deleted
        }
    };
}

/// Maximum number of tasks of a user in the suite.
const LIMIT: u64 = 10;

/// Task store, opened fresh for each test.
#[derive(Debug, Clone)]
pub struct TaskStores {
    /// Store under test.
    pub tasks: Arc<dyn TaskStore>,
    /// Thread store over the same database, if there is one.
    pub threads: Option<Arc<dyn ThreadStore>>,
    /// Account store over the same database, if there is one.
    pub accounts: Option<Arc<dyn AccountStore>>,
    /// Resources that must live as long as the store.
    pub keep: Arc<dyn Keep>,
}

fn task(n: u8) -> ScheduledTask {
    ScheduledTask {
        task_id: format!("task-{n:032x}"),
        user_id: USER.to_owned(),
        context_mode: ContextMode::FreshThread,
        thread_id: None,
        title: "a title".to_owned(),
        prompt: "a prompt".to_owned(),
        schedule: TaskSchedule::Cron("0 3 * * *".to_owned()),
        timezone: "UTC".to_owned(),
        status: TaskStatus::Enabled,
        next_run_at: Some(at(100)),
        last_run_at: None,
        last_run_id: None,
        last_thread_id: None,
        last_error: None,
        run_count: 0,
        version: 1,
        created_at: at(n.into()),
        updated_at: at(n.into()),
    }
}

fn run(n: u8, of: &ScheduledTask) -> TaskRun {
    TaskRun {
        task_run_id: format!("task-run-{n:032x}"),
        task_id: of.task_id.clone(),
        user_id: of.user_id.clone(),
        thread_id: thread("t0"),
        run_id: RunId::from(Uuid::from_u128(n.into())),
        scheduled_for: at(100),
        trigger: TaskTrigger::Scheduled,
        status: TaskRunStatus::Queued,
        error: None,
        started_at: None,
        finished_at: None,
        claimed_at: at(i64::from(n) + 100),
        created_at: at(i64::from(n) + 100),
    }
}

async fn create(stores: &TaskStores, task: ScheduledTask) {
    assert_eq!(stores.tasks.create(task, LIMIT).await, Ok(TaskCreated::New));
}

async fn get(stores: &TaskStores, of: &ScheduledTask) -> ScheduledTask {
    let found = stores.tasks.get(&of.user_id, &of.task_id).await;
    found.expect("read").expect("a task")
}

async fn ids(stores: &TaskStores, thread: Option<&ThreadId>) -> Vec<String> {
    let found = stores.tasks.list(USER, thread).await.expect("read");
    found.into_iter().map(|task| task.task_id).collect()
}

/// All fields are returned unchanged, and a user's tasks are listed newest first.
pub async fn created_task_is_returned_unchanged(open: impl AsyncFn() -> TaskStores) {
    let stores = open().await;
    let full = ScheduledTask {
        title: "ü 😀".to_owned(),
        prompt: "two\nlines".to_owned(),
        schedule: TaskSchedule::Once(at(500)),
        timezone: "Europe/Paris".to_owned(),
        status: TaskStatus::Paused,
        next_run_at: None,
        last_run_at: Some(at(7)),
        last_run_id: Some(RunId::from(Uuid::from_u128(9))),
        last_thread_id: Some(thread("last")),
        last_error: Some("an error".to_owned()),
        run_count: 3,
        ..task(1)
    };
    create(&stores, full.clone()).await;
    create(&stores, task(2)).await;
    assert_eq!(get(&stores, &full).await, full);
    assert_eq!(get(&stores, &task(2)).await, task(2));
    assert_eq!(ids(&stores, None).await, [task(2).task_id, full.task_id]);
}

/// Tasks of another user are neither returned, changed nor deleted.
pub async fn tasks_of_other_user_are_hidden(open: impl AsyncFn() -> TaskStores) {
    let stores = open().await;
    let other = ScheduledTask {
        user_id: "bob".to_owned(),
        ..task(1)
    };
    create(&stores, other.clone()).await;
    assert_eq!(stores.tasks.get(USER, &other.task_id).await, Ok(None));
    assert_eq!(ids(&stores, None).await, Vec::<String>::new());
    assert_eq!(
        stores.tasks.update(task(1)).await,
        Ok(TaskUpdated::Outdated)
    );
    assert_eq!(stores.tasks.delete(USER, &other.task_id).await, Ok(false));
    assert_eq!(stores.tasks.delete("bob", &other.task_id).await, Ok(true));
    assert_eq!(stores.tasks.delete("bob", &other.task_id).await, Ok(false));
}

/// A user has at most the given number of tasks; those of other users do not count.
pub async fn tasks_of_a_user_are_limited(open: impl AsyncFn() -> TaskStores) {
    let stores = open().await;
    let other = ScheduledTask {
        user_id: "bob".to_owned(),
        ..task(1)
    };
    create(&stores, other).await;
    for n in 2..4 {
        assert_eq!(stores.tasks.create(task(n), 2).await, Ok(TaskCreated::New));
    }
    assert_eq!(
        stores.tasks.create(task(4), 2).await,
        Ok(TaskCreated::LimitReached)
    );
    assert_eq!(ids(&stores, None).await.len(), 2);
}

/// An update replaces the task only if it was not changed since it was read.
pub async fn outdated_task_update_is_refused(open: impl AsyncFn() -> TaskStores) {
    let stores = open().await;
    create(&stores, task(1)).await;
    let read = get(&stores, &task(1)).await;
    let changed = ScheduledTask {
        title: "another".to_owned(),
        schedule: TaskSchedule::Once(at(900)),
        status: TaskStatus::Paused,
        next_run_at: None,
        updated_at: at(50),
        ..read.clone()
    };
    assert_eq!(
        stores.tasks.update(changed.clone()).await,
        Ok(TaskUpdated::Stored)
    );
    let stored = get(&stores, &task(1)).await;
    assert_ne!(stored.version, read.version);
    assert_eq!(
        stored,
        ScheduledTask {
            version: stored.version,
            ..changed
        }
    );
    assert_eq!(stores.tasks.update(read).await, Ok(TaskUpdated::Outdated));
    assert_eq!(get(&stores, &task(1)).await, stored);
}

/// A task needs an existing thread of its user, and is deleted with it.
pub async fn tasks_are_deleted_with_their_thread(open: impl AsyncFn() -> TaskStores) {
    let stores = open().await;
    let Some(threads) = &stores.threads else {
        return;
    };
    let on = |n, name: &str| ScheduledTask {
        context_mode: ContextMode::ReuseThread,
        thread_id: Some(thread(name)),
        ..task(n)
    };
    assert_eq!(
        stores.tasks.create(on(1, "t1"), LIMIT).await,
        Ok(TaskCreated::NoThread)
    );
    for (name, user) in [("t1", USER), ("t2", "bob")] {
        let new = NewThread {
            thread_id: thread(name),
            user_id: Some(user.to_owned()),
            assistant: None,
            assistant_id: None,
            metadata: Map::new(),
            ttl: None,
            request: None,
            at: at(0),
        };
        threads.create(new).await.expect("created");
    }
    assert_eq!(
        stores.tasks.create(on(1, "t2"), LIMIT).await,
        Ok(TaskCreated::NoThread)
    );
    create(&stores, on(1, "t1")).await;
    create(&stores, task(2)).await;
    assert_eq!(ids(&stores, Some(&thread("t1"))).await, [task(1).task_id]);
    assert_eq!(
        stores.tasks.update(on(2, "t2")).await,
        Ok(TaskUpdated::NoThread)
    );
    let owner = Owner::User(USER.to_owned());
    let deleted = threads.delete(&thread("t1"), &owner).await;
    assert_eq!(deleted, Ok(Deleted::Removed));
    assert_eq!(ids(&stores, None).await, [task(2).task_id]);
}
