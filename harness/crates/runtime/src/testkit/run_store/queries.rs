//! Contract of run queries and deletions.

use super::{admit, end, started};
use crate::runs::RunStatus;
use crate::runs::store::{CommitError, NewRun, RunCommit, RunListQuery, StoreError};
use crate::testkit::{
    RunStores, USER, all_events, at, checkpoint_write, commit_of, event, new_run, run, thread,
};
use deerflow_core::actor_context::{ActorContext, NoActor, Owner, scope};
use deerflow_core::state::ThreadState;

/// Lists respect offset, limit and status.
pub async fn runs_are_listed_newest_first_in_pages(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for n in 0..5 {
        let record = admit(
            &stores,
            NewRun {
                created_at: at(n),
                ..new_run(&format!("r{n}"), "t1")
            },
        )
        .await;
        end(
            &stores,
            &record,
            if n % 2 == 0 {
                RunStatus::Interrupted
            } else {
                RunStatus::Error
            },
        )
        .await;
    }
    let names = async |limit, offset, status| -> Vec<String> {
        let query = RunListQuery {
            limit,
            offset,
            status,
        };
        let runs = stores
            .query
            .list(&thread("t1"), &query, &Owner::None)
            .await
            .expect("read");
        runs.into_iter().map(|run| run.run_id.to_string()).collect()
    };
    assert_eq!(names(2, 0, None).await, ["r4", "r3"]);
    assert_eq!(names(2, 4, None).await, ["r0"]);
    assert_eq!(names(9, 0, Some(RunStatus::Error)).await, ["r3", "r1"]);
    assert_eq!(names(0, 0, None).await, [""; 0]);
}

/// Rows without an owner are visible to maintenance only.
pub async fn runs_are_visible_to_their_owner_only(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, new_run("r1", "t1")).await;
    admit(
        &stores,
        NewRun {
            user_id: None,
            ..new_run("r2", "t2")
        },
    )
    .await;
    let sees = async |id: &str, owner: &Owner| {
        stores
            .query
            .get(&run(id), owner)
            .await
            .expect("read")
            .is_some()
    };
    let (ann, bob) = (Owner::User(USER.to_owned()), Owner::User("bob".to_owned()));
    assert_eq!(
        (
            sees("r1", &ann).await,
            sees("r1", &bob).await,
            sees("r1", &Owner::None).await
        ),
        (true, false, true)
    );
    assert_eq!(
        (sees("r2", &ann).await, sees("r2", &Owner::None).await),
        (false, true)
    );
    let all = RunListQuery {
        limit: 9,
        ..RunListQuery::default()
    };
    assert_eq!(
        stores.query.list(&thread("t1"), &all, &bob).await,
        Ok(vec![])
    );
    assert_eq!(
        stores.query.get(&run("r1"), &Owner::Auto).await,
        Err(StoreError::NoActor(NoActor))
    );
    scope(ActorContext::user(USER), async {
        assert!(sees("r1", &Owner::Auto).await)
    })
    .await;
}

/// The run is deleted with its events and checkpoints; a running one remains.
pub async fn only_a_finished_run_is_deleted(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = started(&stores, "r1", "t1").await;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let write = checkpoint_write("t1", Some("r1"), 1, &mut state, &mut tail);
    let commit = RunCommit {
        events: vec![event("t1", "r1", "a")],
        checkpoints: vec![write],
        ..commit_of(&record)
    };
    stores
        .commit
        .commit(commit.into())
        .await
        .expect("committed");
    assert_eq!(stores.delete.delete(&run("r1")).await, Ok(false));
    end(&stores, &record, RunStatus::Success).await;
    assert_eq!(stores.delete.delete(&run("r1")).await, Ok(true));
    assert_eq!(stores.delete.delete(&run("r1")).await, Ok(false));
    assert_eq!(stores.query.get(&run("r1"), &Owner::None).await, Ok(None));
    assert_eq!(
        stores
            .events
            .list(&thread("t1"), &all_events(), &Owner::None)
            .await,
        Ok(vec![])
    );
    assert!(
        stores
            .checkpoints
            .get(&thread("t1"), None)
            .await
            .expect("read")
            .is_none()
    );
    assert_eq!(
        stores.commit.commit(commit_of(&record).into()).await,
        Err(CommitError::Gone(run("r1")))
    );
}

/// Other threads are not affected.
pub async fn deleting_a_threads_runs_removes_their_events(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for (id, on) in [("r1", "t1"), ("r2", "t2")] {
        let record = started(&stores, id, on).await;
        let commit = RunCommit {
            events: vec![event(on, id, "a")],
            ..commit_of(&record)
        };
        stores
            .commit
            .commit(commit.into())
            .await
            .expect("committed");
        end(&stores, &record, RunStatus::Success).await;
    }
    stores
        .delete
        .delete_thread(&thread("t1"))
        .await
        .expect("deleted");
    assert_eq!(stores.query.get(&run("r1"), &Owner::None).await, Ok(None));
    assert_eq!(
        stores
            .events
            .list(&thread("t1"), &all_events(), &Owner::None)
            .await,
        Ok(vec![])
    );
    assert!(
        stores
            .query
            .get(&run("r2"), &Owner::None)
            .await
            .expect("read")
            .is_some()
    );
    assert_eq!(
        stores
            .events
            .list(&thread("t2"), &all_events(), &Owner::None)
            .await
            .map(|events| events.len()),
        Ok(1)
    );
}
