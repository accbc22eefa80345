//! Contract of the effects of runs on their thread, and of the deletion of threads.

use deerflow_core::actor_context::Owner;
use deerflow_core::state::ThreadState;
use deerflow_runtime::checkpoint::PendingTask;
use deerflow_runtime::runs::store::{NewRun, RunCommit};
use deerflow_runtime::runs::{RunStatus, ThreadStatus};
use deerflow_runtime::testkit::{
    USER, all_events, at, checkpoint_write, commit_of, end_in, event, new_run, run, thread,
};
use serde_json::json;

use super::{ThreadStores, ann, get, make, new_thread};
use crate::threads::{Created, Deleted, NewThread};

/// The records of a thread and its runs are always consistent.
pub async fn run_updates_status_title_and_time_of_thread(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let admitted = stores
        .runs
        .create
        .admit(NewRun {
            created_at: at(2),
            at: at(2),
            ..new_run("r1", "t1")
        })
        .await
        .expect("admitted")
        .run;
    let busy = get(&stores, "t1").await;
    assert_eq!(
        (busy.status, busy.updated_at, busy.assistant.as_deref()),
        (ThreadStatus::Busy, at(2), Some("lead_agent"))
    );
    assert_eq!(
        (busy.user_id.as_deref(), busy.created_at),
        (Some(USER), at(2))
    );
    let mut end = end_in(RunStatus::Error);
    end.title = Some("T".to_owned());
    let commit = RunCommit {
        end: Some(end),
        ..commit_of(&admitted)
    };
    stores
        .runs
        .commit
        .commit(commit.into())
        .await
        .expect("ended");
    let ended = get(&stores, "t1").await;
    assert_eq!(
        (ended.status, ended.title.as_deref(), ended.updated_at),
        (ThreadStatus::Error, Some("T"), at(5))
    );
    let next = stores
        .runs
        .create
        .admit(NewRun {
            created_at: at(7),
            at: at(7),
            ..new_run("r2", "t1")
        })
        .await
        .expect("admitted")
        .run;
    let commit = RunCommit {
        end: Some(end_in(RunStatus::Interrupted)),
        ..commit_of(&next)
    };
    stores
        .runs
        .commit
        .commit(commit.into())
        .await
        .expect("ended");
    assert_eq!(get(&stores, "t1").await.title.as_deref(), Some("T"));
}

/// The status follows the newest remaining checkpoint: an interrupt of an earlier run is pending
/// again after a rollback.
pub async fn rollback_sets_thread_status_from_newest_checkpoint(
    open: impl AsyncFn() -> ThreadStores,
) {
    let stores = open().await;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let pending = PendingTask {
        interrupts: vec![json!({"value": "sure?"})],
        ..PendingTask::new("task", "tools")
    };
    for (n, (due, expected)) in [
        (vec![], ThreadStatus::Idle),
        (vec![pending], ThreadStatus::Interrupted),
    ]
    .into_iter()
    .enumerate()
    {
        let (stored, undone) = (format!("kept{n}"), format!("undone{n}"));
        let mut write =
            checkpoint_write("t1", Some(&stored), n as u64 * 2 + 1, &mut state, &mut tail);
        write.meta.next = due;
        let first = stores
            .runs
            .create
            .admit(new_run(&stored, "t1"))
            .await
            .expect("admitted")
            .run;
        let end = Some(end_in(RunStatus::Interrupted));
        let commit = RunCommit {
            checkpoints: vec![write],
            end,
            ..commit_of(&first)
        };
        stores
            .runs
            .commit
            .commit(commit.into())
            .await
            .expect("ended");
        let second = stores
            .runs
            .create
            .admit(new_run(&undone, "t1"))
            .await
            .expect("admitted")
            .run;
        let mut write =
            checkpoint_write("t1", Some(&undone), n as u64 * 2 + 2, &mut state, &mut tail);
        write.meta.next = vec![PendingTask::new("x", "model")];
        let commit = RunCommit {
            checkpoints: vec![write],
            ..commit_of(&second)
        };
        stores
            .runs
            .commit
            .commit(commit.into())
            .await
            .expect("committed");
        let mut end = end_in(RunStatus::Error);
        end.discard_checkpoints = true;
        let commit = RunCommit {
            end: Some(end),
            ..commit_of(&second)
        };
        stores
            .runs
            .commit
            .commit(commit.into())
            .await
            .expect("ended");
        assert_eq!(get(&stores, "t1").await.status, expected, "round {n}");
    }
}

/// The thread is unchanged.
pub async fn busy_thread_is_not_deleted(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    stores
        .runs
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted");
    assert_eq!(
        stores.threads.delete(&thread("t1"), &ann()).await,
        Ok(Deleted::Busy)
    );
    assert_eq!(get(&stores, "t1").await.status, ThreadStatus::Busy);
    assert!(
        stores
            .runs
            .query
            .active(&thread("t1"))
            .await
            .expect("read")
            .is_some()
    );
}

/// Runs, events, checkpoints and logs are deleted with it; its owner may reuse the id.
pub async fn deleted_thread_leaves_no_rows_and_reserves_its_id(
    open: impl AsyncFn() -> ThreadStores,
) {
    let stores = open().await;
    let admitted = stores
        .runs
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let write = checkpoint_write("t1", Some("r1"), 1, &mut state, &mut tail);
    let commit = RunCommit {
        events: vec![event("t1", "r1", "a")],
        checkpoints: vec![write],
        end: Some(end_in(RunStatus::Error)),
        ..commit_of(&admitted)
    };
    stores
        .runs
        .commit
        .commit(commit.into())
        .await
        .expect("ended");
    assert_eq!(
        stores.threads.delete(&thread("t1"), &ann()).await,
        Ok(Deleted::Removed)
    );
    assert_eq!(
        stores.threads.delete(&thread("t1"), &ann()).await,
        Ok(Deleted::NotFound)
    );
    assert_eq!(
        stores.threads.get(&thread("t1"), &Owner::None).await,
        Ok(None)
    );
    assert_eq!(
        stores.runs.query.get(&run("r1"), &Owner::None).await,
        Ok(None)
    );
    assert_eq!(
        stores
            .runs
            .events
            .list(&thread("t1"), &all_events(), &Owner::None)
            .await,
        Ok(vec![])
    );
    assert!(
        stores
            .runs
            .checkpoints
            .get(&thread("t1"), None)
            .await
            .expect("read")
            .is_none()
    );
    let foreign = NewThread {
        user_id: Some("bob".to_owned()),
        ..new_thread("t1", json!({}))
    };
    assert_eq!(stores.threads.create(foreign).await, Ok(Created::Taken));
    let their_run = NewRun {
        user_id: Some("bob".to_owned()),
        ..new_run("r2", "t1")
    };
    assert!(stores.runs.create.admit(their_run).await.is_err());
    make(&stores, new_thread("t1", json!({}))).await;
}
