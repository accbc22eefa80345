//! Requirements on firings and the runs of tasks.

use deerflow_runtime::testkit::{USER, at, at_once};

use super::{TaskStores, create, get, run, task};
use crate::scheduled_tasks::{
    ACTIVE_RUN, Begun, Firing, MAX_ENDED_RUNS, ScheduledTask, TaskRun, TaskRunStatus, TaskSchedule,
    TaskStatus, TaskTrigger,
};
use crate::testkit::accounts::set_disabled;

fn firing() -> Option<Firing> {
    Some(Firing {
        fires_for: at(100),
        next: Some(at(200)),
    })
}

/// Only enabled tasks with a time up to now are due, in order of that time.
pub async fn due_tasks_are_enabled_and_in_order(open: impl AsyncFn() -> TaskStores) {
    let stores = open().await;
    let with = |n, next, status| ScheduledTask {
        next_run_at: next,
        status,
        ..task(n)
    };
    for (n, next, status) in [
        (1, Some(at(90)), TaskStatus::Enabled),
        (2, Some(at(80)), TaskStatus::Enabled),
        (3, Some(at(70)), TaskStatus::Paused),
        (4, None, TaskStatus::Enabled),
        (5, Some(at(101)), TaskStatus::Enabled),
    ] {
        create(&stores, with(n, next, status)).await;
    }
    let due = async |limit| {
        let due = stores.tasks.due(at(100), limit).await.expect("read");
        due.into_iter()
            .map(|task| task.task_id)
            .collect::<Vec<String>>()
    };
    assert_eq!(due(9).await, [task(2).task_id, task(1).task_id]);
    assert_eq!(due(1).await, [task(2).task_id]);
}

/// A task of a disabled account is neither due nor fired. Its missed time is due again once the
/// account is enabled.
pub async fn missed_task_of_disabled_account_is_due_again(open: impl AsyncFn() -> TaskStores) {
    let stores = open().await;
    let Some(accounts) = &stores.accounts else {
        return;
    };
    let other = ScheduledTask {
        user_id: "program".to_owned(),
        ..task(2)
    };
    create(&stores, task(1)).await;
    create(&stores, other.clone()).await;
    let due = async || {
        let due = stores.tasks.due(at(500), 9).await.expect("read");
        due.into_iter()
            .map(|task| task.task_id)
            .collect::<Vec<String>>()
    };
    set_disabled(&**accounts, USER, true).await;
    assert_eq!(due().await, std::slice::from_ref(&other.task_id));
    let begin = async || stores.tasks.begin(run(1, &task(1)), firing()).await;
    assert_eq!(begin().await, Ok(Begun::Gone));
    set_disabled(&**accounts, USER, false).await;
    assert_eq!(due().await, [task(1).task_id, other.task_id]);
    assert_eq!(begin().await, Ok(Begun::Queued));
}

/// Of concurrent firings for one time, one is stored, and the task moves to its next time.
pub async fn task_firing_is_stored_once(open: impl AsyncFn() -> TaskStores) {
    let stores = open().await;
    create(&stores, task(1)).await;
    let begun = at_once((1..9).map(|n| {
        let tasks = stores.tasks.clone();
        async move {
            tasks
                .begin(run(n, &task(1)), firing())
                .await
                .expect("begun")
        }
    }))
    .await;
    let queued = begun.iter().filter(|begun| **begun == Begun::Queued);
    assert_eq!(queued.count(), 1, "{begun:?}");
    let gone = begun.iter().filter(|begun| **begun == Begun::Gone);
    assert_eq!(gone.count(), 7, "{begun:?}");
    let stored = stores
        .tasks
        .runs(&task(1).task_id, 9, 0)
        .await
        .expect("read");
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].status, TaskRunStatus::Queued);
    assert_eq!(get(&stores, &task(1)).await.next_run_at, Some(at(200)));
    assert_eq!(
        stores.tasks.begin(run(9, &task(7)), firing()).await,
        Ok(Begun::Gone)
    );
}

/// During an active run, a scheduled firing is stored as skipped, and a manual one not at all.
pub async fn firing_during_an_active_run_is_skipped(open: impl AsyncFn() -> TaskStores) {
    let stores = open().await;
    create(&stores, task(1)).await;
    let manual = |n| TaskRun {
        trigger: TaskTrigger::Manual,
        ..run(n, &task(1))
    };
    let begin = async |run, firing| stores.tasks.begin(run, firing).await.expect("begun");
    assert_eq!(begin(manual(1), None).await, Begun::Queued);
    assert_eq!(begin(manual(2), None).await, Begun::Busy);
    assert_eq!(begin(run(3, &task(1)), firing()).await, Begun::Busy);
    let stored = stores
        .tasks
        .runs(&task(1).task_id, 9, 0)
        .await
        .expect("read");
    let skipped =
        run(3, &task(1)).ended(TaskRunStatus::Skipped, Some(ACTIVE_RUN.to_owned()), at(103));
    assert_eq!(stored, [skipped, manual(1)]);
    let changed = get(&stores, &task(1)).await;
    assert_eq!(
        (changed.next_run_at, changed.last_error.as_deref()),
        (Some(at(200)), Some(ACTIVE_RUN))
    );
    let active = stores.tasks.active(None, 9).await.expect("read");
    assert_eq!(active, [manual(1)]);
    assert_eq!(stores.tasks.active_of(USER).await, Ok(vec![manual(1)]));
    assert_eq!(stores.tasks.active_of("bob").await, Ok(vec![]));
    let other = task(2).task_id;
    assert_eq!(stores.tasks.active(Some(&other), 9).await, Ok(vec![]));
}

/// The start of a run and its end change the task once, also with concurrent observers.
pub async fn run_changes_its_task_once(open: impl AsyncFn() -> TaskStores) {
    let stores = open().await;
    create(&stores, task(1)).await;
    let queued = run(1, &task(1));
    assert_eq!(
        stores.tasks.begin(queued.clone(), firing()).await,
        Ok(Begun::Queued)
    );
    let advance = async |seen: &TaskRun, next: &TaskRun| {
        let stored = at_once((0..4).map(|_| {
            let (tasks, seen, next) = (stores.tasks.clone(), seen.clone(), next.clone());
            async move { tasks.advance(&seen, next).await.expect("written") }
        }))
        .await;
        assert_eq!(stored.iter().filter(|stored| **stored).count(), 1);
    };
    let started = queued.started(at(110));
    advance(&queued, &started).await;
    let running = get(&stores, &task(1)).await;
    assert_eq!(
        (running.last_run_at, running.last_run_id, running.run_count),
        (Some(at(110)), Some(queued.run_id.clone()), 1)
    );
    assert_eq!(running.last_thread_id, Some(queued.thread_id.clone()));
    let failed = started.ended(TaskRunStatus::Failed, Some("broken".to_owned()), at(120));
    advance(&started, &failed).await;
    let after = get(&stores, &task(1)).await;
    assert_eq!(
        (after.last_error.as_deref(), after.run_count, after.status),
        (Some("broken"), 1, TaskStatus::Enabled)
    );
    let stored = stores.tasks.runs(&task(1).task_id, 9, 0).await;
    assert_eq!(stored, Ok(vec![failed]));
    assert_eq!(stores.tasks.active(None, 9).await, Ok(vec![]));
}

/// A task that fires once ends with its scheduled run.
pub async fn end_of_a_single_run_ends_its_task(open: impl AsyncFn() -> TaskStores) {
    let stores = open().await;
    let last = Some(Firing {
        fires_for: at(100),
        next: None,
    });
    for (n, end, expected) in [
        (1, TaskRunStatus::Success, TaskStatus::Completed),
        (2, TaskRunStatus::Failed, TaskStatus::Failed),
        (3, TaskRunStatus::Interrupted, TaskStatus::Cancelled),
    ] {
        let once = ScheduledTask {
            schedule: TaskSchedule::Once(at(100)),
            ..task(n)
        };
        create(&stores, once.clone()).await;
        let queued = run(n, &once);
        let begun = stores.tasks.begin(queued.clone(), last).await;
        assert_eq!(begun, Ok(Begun::Queued));
        let ended = queued.ended(end, None, at(120));
        assert_eq!(stores.tasks.advance(&queued, ended).await, Ok(true));
        assert_eq!(get(&stores, &once).await.status, expected);
    }
}

/// Runs of a task are returned newest first, in pages, and are deleted with the task.
pub async fn task_runs_are_paged_newest_first(open: impl AsyncFn() -> TaskStores) {
    let stores = open().await;
    create(&stores, task(1)).await;
    for n in 1..6 {
        let queued = run(n, &task(1));
        let begun = stores.tasks.begin(queued.clone(), None).await;
        assert_eq!(begun, Ok(Begun::Queued));
        let ended = queued.ended(TaskRunStatus::Success, None, at(300));
        assert_eq!(stores.tasks.advance(&queued, ended).await, Ok(true));
    }
    let page = async |limit, offset| {
        let page = stores.tasks.runs(&task(1).task_id, limit, offset).await;
        let runs = page.expect("read").into_iter();
        runs.map(|run| run.task_run_id).collect::<Vec<String>>()
    };
    let id = |n| run(n, &task(1)).task_run_id;
    assert_eq!(page(2, 0).await, [id(5), id(4)]);
    assert_eq!(page(9, 3).await, [id(2), id(1)]);
    let deleted = stores.tasks.delete(USER, &task(1).task_id).await;
    assert_eq!(deleted, Ok(true));
    assert_eq!(page(9, 0).await, Vec::<String>::new());
}

/// New firings delete the oldest ended runs beyond the limit, and no active run.
pub async fn oldest_ended_task_runs_are_deleted(open: impl AsyncFn() -> TaskStores) {
    let stores = open().await;
    create(&stores, task(1)).await;
    let active = TaskRun {
        trigger: TaskTrigger::Manual,
        ..run(1, &task(1))
    };
    let begun = stores.tasks.begin(active.clone(), None).await;
    assert_eq!(begun, Ok(Begun::Queued));
    let limit = i64::try_from(MAX_ENDED_RUNS).expect("a small number");
    let skipped = |n: i64| TaskRun {
        task_run_id: format!("task-run-{n}"),
        created_at: at(1_000 + n),
        ..run(2, &task(1))
    };
    for n in 0..limit + 2 {
        let firing = Firing {
            fires_for: at(100 + n),
            next: Some(at(101 + n)),
        };
        let begun = stores.tasks.begin(skipped(n), Some(firing)).await;
        assert_eq!(begun, Ok(Begun::Busy));
    }
    let id = task(1).task_id;
    let page = stores.tasks.runs(&id, 9, MAX_ENDED_RUNS - 1).await;
    let rows = page.expect("read").into_iter();
    let ids: Vec<String> = rows.map(|run| run.task_run_id).collect();
    assert_eq!(ids, [skipped(2).task_run_id, active.task_run_id]);
}
