//! What thread stores promise, as functions that every implementation runs.
//!
//! Expand [`thread_store_suite`](crate::thread_store_suite) with a function that opens fresh [`ThreadStores`], as with the suites
//! of `harness::testkit`.

pub mod api_keys;
pub mod assistants;
pub mod crons;
pub mod feedback;
pub mod items;
pub mod thread_search;
pub mod upkeep;
pub mod usage;

use std::sync::Arc;

use harness::runtime::actor_context::{NoActor, Owner};
use harness::runtime::checkpoint::PendingTask;
use harness::runtime::runs::store::{Known, Made, NewRun, RunCommit, StoreError};
use harness::runtime::runs::{RunStatus, ThreadStatus};
use harness::state::ThreadState;
use harness::testkit::requests::key as request_key;
use harness::testkit::{
    RunStores, USER, all_events, at, at_once, checkpoint_write, commit_of, end_in, event, new_run,
    object, run, thread,
};
use serde_json::{Value, json};

use crate::assistants::AssistantStore;
use crate::feedback::FeedbackStore;
use crate::threads::{
    Created, Deleted, NewThread, ThreadPatch, ThreadRecord, ThreadSearch, ThreadSort, ThreadStore,
};

/// One test per promise of thread stores.
#[macro_export]
macro_rules! thread_store_suite {
    ($attrs:tt $open:expr) => {
        harness::promises! { $attrs $open, [$crate::testkit]
            a_made_thread_is_there_as_it_was_asked_for
            making_it_again_changes_nothing_and_another_user_does_not_get_it
            a_request_that_comes_again_gets_its_thread
            another_users_thread_is_as_if_it_did_not_exist
            metadata_is_matched_with_its_type
            search_combines_its_filters_and_count_agrees
            pinned_threads_come_first_then_the_wanted_order
            a_patch_merges_one_level_deep
            patches_at_once_of_different_keys_both_survive
            a_run_moves_status_title_and_time_of_its_thread
            after_a_rollback_the_thread_stands_where_its_newest_checkpoint_says
            a_busy_thread_is_not_deleted
            a_deleted_thread_leaves_nothing_and_its_id_is_not_given_to_others
        }
    };
}

/// The ports of one store, opened fresh for one promise.
#[derive(Debug, Clone)]
pub struct ThreadStores {
    /// Threads.
    pub threads: Arc<dyn ThreadStore>,
    /// What users think of runs.
    pub feedback: Arc<dyn FeedbackStore>,
    /// Assistants.
    pub assistants: Arc<dyn AssistantStore>,
    /// What lives in them.
    pub runs: RunStores,
}

fn ann() -> Owner {
    Owner::User(USER.to_owned())
}

fn bob() -> Owner {
    Owner::User("bob".to_owned())
}

fn new_thread(id: &str, metadata: Value) -> NewThread {
    let metadata = object(metadata);
    NewThread {
        thread_id: thread(id),
        user_id: Some(USER.to_owned()),
        assistant: None,
        assistant_id: None,
        metadata,
        ttl: None,
        request: None,
        at: at(0),
    }
}

async fn make(stores: &ThreadStores, new: NewThread) -> ThreadRecord {
    match stores.threads.create(new).await {
        Ok(Created::New(record)) => record,
        other => panic!("not made: {other:?}"),
    }
}

async fn get(stores: &ThreadStores, id: &str) -> ThreadRecord {
    stores
        .threads
        .get(&thread(id), &Owner::None)
        .await
        .expect("read")
        .expect("there")
}

async fn found(stores: &ThreadStores, search: ThreadSearch) -> Vec<String> {
    let threads = stores
        .threads
        .search(
            &ThreadSearch {
                limit: 100,
                ..search
            },
            &ann(),
        )
        .await
        .expect("read");
    threads
        .into_iter()
        .map(|record| record.thread_id.to_string())
        .collect()
}

fn by_metadata(metadata: Value) -> ThreadSearch {
    ThreadSearch {
        metadata: object(metadata),
        sort_by: ThreadSort::ThreadId,
        ascending: true,
        ..ThreadSearch::default()
    }
}

/// Idle, untitled, with its metadata.
pub async fn a_made_thread_is_there_as_it_was_asked_for(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let metadata = json!({"z": null, "a": [1, 1.0], "text": "\u{0} 😀"});
    let made = make(
        &stores,
        NewThread {
            assistant: Some("lead_agent".to_owned()),
            ..new_thread("t1", metadata.clone())
        },
    )
    .await;
    assert_eq!(
        (
            made.status,
            made.title.as_deref(),
            made.assistant.as_deref()
        ),
        (ThreadStatus::Idle, None, Some("lead_agent"))
    );
    assert_eq!((made.created_at, made.updated_at), (at(0), at(0)));
    assert_eq!(
        Value::Object(made.metadata.clone()).to_string(),
        metadata.to_string()
    );
    assert_eq!(get(&stores, "t1").await, made);
    assert_eq!(
        stores.threads.get(&thread("t2"), &Owner::None).await,
        Ok(None)
    );
}

/// One of many makers wins, and the others of the same user find what it made.
pub async fn making_it_again_changes_nothing_and_another_user_does_not_get_it(
    open: impl AsyncFn() -> ThreadStores,
) {
    let stores = open().await;
    let made = at_once((0..20).map(|n| {
        let stores = stores.clone();
        async move {
            stores
                .threads
                .create(new_thread("t1", json!({"n": n})))
                .await
                .expect("written")
        }
    }))
    .await;
    assert_eq!(
        made.iter()
            .filter(|created| matches!(created, Created::New(_)))
            .count(),
        1
    );
    let held = get(&stores, "t1").await;
    assert!(made.into_iter().all(|created| matches!(created, Created::New(record) | Created::Existing(record) if record == held)));
    for user_id in [Some("bob".to_owned()), None] {
        let theirs = NewThread {
            user_id,
            ..new_thread("t1", json!({}))
        };
        assert_eq!(stores.threads.create(theirs).await, Ok(Created::Taken));
    }
    assert_eq!(get(&stores, "t1").await, held);
}

/// And no other; a request that makes none leaves its key free.
pub async fn a_request_that_comes_again_gets_its_thread(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let keyed = |id: &str, name: &str| NewThread {
        request: Some(request_key(name)),
        ..new_thread(id, json!({}))
    };
    let made = at_once((0..8).map(|n| {
        let (stores, new) = (stores.clone(), keyed(&format!("t{n}"), "k"));
        async move { stores.threads.create(new).await.expect("written") }
    }))
    .await;
    let ids: Vec<_> = made
        .iter()
        .filter_map(|created| {
            if let Created::New(new) = created {
                Some(&new.thread_id)
            } else {
                None
            }
        })
        .collect();
    let [only] = ids.as_slice() else {
        panic!("{made:?}")
    };
    let known = Created::Known(Known::Again(Made::Thread((*only).clone())));
    assert_eq!(made.iter().filter(|created| **created == known).count(), 7);
    assert_eq!(
        stores
            .threads
            .count(
                &ThreadSearch {
                    limit: 9,
                    ..ThreadSearch::default()
                },
                &ann()
            )
            .await,
        Ok(1)
    );
    let found = stores
        .threads
        .create(keyed(only.as_str(), "other"))
        .await
        .expect("written");
    assert!(matches!(found, Created::Existing(_)), "{found:?}");
    assert_eq!(
        stores
            .runs
            .requests
            .known(&request_key("other"), at(1))
            .await,
        Ok(None)
    );
}

/// Not read, found, counted, changed or deleted; without an actor nothing is asked.
pub async fn another_users_thread_is_as_if_it_did_not_exist(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let made = make(&stores, new_thread("t1", json!({}))).await;
    make(
        &stores,
        NewThread {
            user_id: None,
            ..new_thread("t2", json!({}))
        },
    )
    .await;
    let all = ThreadSearch {
        limit: 9,
        ..ThreadSearch::default()
    };
    assert_eq!(stores.threads.get(&thread("t1"), &bob()).await, Ok(None));
    assert_eq!(stores.threads.search(&all, &bob()).await, Ok(vec![]));
    assert_eq!(stores.threads.count(&all, &bob()).await, Ok(0));
    assert_eq!(
        stores
            .threads
            .patch(&thread("t1"), ThreadPatch::default(), &bob(), at(1))
            .await,
        Ok(None)
    );
    assert_eq!(
        stores.threads.delete(&thread("t1"), &bob()).await,
        Ok(Deleted::NotFound)
    );
    assert_eq!(
        stores.threads.get(&thread("t1"), &ann()).await,
        Ok(Some(made))
    );
    assert_eq!(stores.threads.get(&thread("t2"), &ann()).await, Ok(None));
    assert_eq!(stores.threads.count(&all, &Owner::None).await, Ok(2));
    assert_eq!(
        stores.threads.get(&thread("t1"), &Owner::Auto).await,
        Err(StoreError::NoActor(NoActor))
    );
    assert_eq!(
        stores.threads.delete(&thread("t1"), &Owner::Auto).await,
        Err(StoreError::NoActor(NoActor))
    );
}

/// `true` is not 1, 1 is not `1.0` or `"1"`, and null is not an absence.
pub async fn metadata_is_matched_with_its_type(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let values = [
        json!(true),
        json!(1),
        json!(1.0),
        json!("1"),
        json!("true"),
        json!(null),
        json!("ü \"q\" \\ \u{1}"),
        json!(i64::MIN),
        json!(-0.25),
    ];
    for (n, value) in values.iter().enumerate() {
        make(
            &stores,
            new_thread(&format!("t{n}"), json!({"k_-1": value, "other": n})),
        )
        .await;
    }
    make(&stores, new_thread("t_absent", json!({"\u{0}": "poison"}))).await;
    for (n, value) in values.iter().enumerate() {
        assert_eq!(
            found(&stores, by_metadata(json!({"k_-1": value}))).await,
            [format!("t{n}")],
            "{value}"
        );
    }
    assert_eq!(
        found(&stores, by_metadata(json!({"k_-1": 1, "other": 1}))).await,
        ["t1"]
    );
    assert_eq!(
        found(&stores, by_metadata(json!({"k_-1": 1, "other": 2}))).await,
        [""; 0]
    );
    assert_eq!(
        found(&stores, by_metadata(json!({"unknown": null}))).await,
        [""; 0]
    );
}

/// Ids, status and metadata; limit and offset do not change the count.
pub async fn search_combines_its_filters_and_count_agrees(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    for n in 0..6 {
        make(
            &stores,
            new_thread(&format!("t{n}"), json!({"even": n % 2 == 0})),
        )
        .await;
    }
    for id in ["t2", "t3"] {
        let patch = ThreadPatch {
            status: Some(ThreadStatus::Error),
            ..ThreadPatch::default()
        };
        stores
            .threads
            .patch(&thread(id), patch, &ann(), at(1))
            .await
            .expect("written");
    }
    let even = by_metadata(json!({"even": true}));
    assert_eq!(found(&stores, even.clone()).await, ["t0", "t2", "t4"]);
    assert_eq!(
        found(
            &stores,
            ThreadSearch {
                status: Some(ThreadStatus::Error),
                ..even.clone()
            }
        )
        .await,
        ["t2"]
    );
    assert_eq!(
        found(
            &stores,
            ThreadSearch {
                ids: vec![thread("t4"), thread("t5"), thread("t9")],
                ..even.clone()
            }
        )
        .await,
        ["t4"]
    );
    assert_eq!(
        found(
            &stores,
            ThreadSearch {
                offset: 1,
                ..even.clone()
            }
        )
        .await,
        ["t2", "t4"]
    );
    let page = ThreadSearch {
        limit: 1,
        offset: 1,
        ..even
    };
    assert_eq!(
        stores
            .threads
            .search(&page, &ann())
            .await
            .map(|threads| threads.len()),
        Ok(1)
    );
    assert_eq!(stores.threads.count(&page, &ann()).await, Ok(3));
}

/// Ties go to the greater id.
pub async fn pinned_threads_come_first_then_the_wanted_order(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let pins = [
        json!(null),
        json!(true),
        json!(1),
        json!("true"),
        json!(true),
    ];
    for (n, pin) in pins.iter().enumerate() {
        let new = new_thread(&format!("t{n}"), json!({"deerflow_pinned": pin}));
        make(
            &stores,
            NewThread {
                at: at(i64::try_from(n / 2).unwrap_or_default()),
                ..new
            },
        )
        .await;
    }
    let newest = ThreadSearch {
        pinned_first: true,
        ..ThreadSearch::default()
    };
    assert_eq!(
        found(&stores, newest.clone()).await,
        ["t4", "t1", "t3", "t2", "t0"]
    );
    assert_eq!(
        found(
            &stores,
            ThreadSearch {
                pinned_first: false,
                ..newest.clone()
            }
        )
        .await,
        ["t4", "t3", "t2", "t1", "t0"]
    );
    assert_eq!(
        found(
            &stores,
            ThreadSearch {
                ascending: true,
                sort_by: ThreadSort::CreatedAt,
                ..newest.clone()
            }
        )
        .await,
        ["t1", "t4", "t0", "t3", "t2"]
    );
    let unpin = ThreadPatch {
        metadata: object(json!({"deerflow_pinned": false})),
        ..ThreadPatch::default()
    };
    stores
        .threads
        .patch(&thread("t4"), unpin, &ann(), at(9))
        .await
        .expect("written");
    assert_eq!(found(&stores, newest).await, ["t1", "t4", "t3", "t2", "t0"]);
}

/// Null stays null, and only `touch` moves the time.
pub async fn a_patch_merges_one_level_deep(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    make(&stores, new_thread("t1", json!({"a": {"x": 1}, "b": 1}))).await;
    let patch = ThreadPatch {
        metadata: object(json!({"a": {"y": 2}, "b": null, "c": 3})),
        title: Some(Some("T".to_owned())),
        ..ThreadPatch::default()
    };
    let patched = stores
        .threads
        .patch(&thread("t1"), patch, &ann(), at(9))
        .await
        .expect("written")
        .expect("there");
    assert_eq!(
        Value::Object(patched.metadata.clone()),
        json!({"a": {"y": 2}, "b": null, "c": 3})
    );
    assert_eq!(
        (patched.title.as_deref(), patched.updated_at),
        (Some("T"), at(0))
    );
    assert_eq!(get(&stores, "t1").await, patched);
    let touch = ThreadPatch {
        title: Some(None),
        touch: true,
        ..ThreadPatch::default()
    };
    let touched = stores
        .threads
        .patch(&thread("t1"), touch, &ann(), at(9))
        .await
        .expect("written")
        .expect("there");
    assert_eq!(
        (touched.title, touched.updated_at, touched.metadata),
        (None, at(9), patched.metadata)
    );
}

/// No change is lost.
pub async fn patches_at_once_of_different_keys_both_survive(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    make(&stores, new_thread("t1", json!({}))).await;
    at_once((0..20).map(|n| {
        let stores = stores.clone();
        async move {
            let patch = ThreadPatch {
                metadata: object(json!({format!("k{n}"): n})),
                ..ThreadPatch::default()
            };
            stores
                .threads
                .patch(&thread("t1"), patch, &ann(), at(1))
                .await
                .expect("written")
        }
    }))
    .await;
    let metadata = get(&stores, "t1").await.metadata;
    assert!(
        (0..20).all(|n| metadata.get(&format!("k{n}")) == Some(&json!(n))),
        "{metadata:?}"
    );
}

/// The thread's row and the run's never disagree.
pub async fn a_run_moves_status_title_and_time_of_its_thread(open: impl AsyncFn() -> ThreadStores) {
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
    stores
        .runs
        .commit
        .commit(RunCommit {
            end: Some(end),
            ..commit_of(&admitted)
        })
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
    stores
        .runs
        .commit
        .commit(RunCommit {
            end: Some(end_in(RunStatus::Interrupted)),
            ..commit_of(&next)
        })
        .await
        .expect("ended");
    assert_eq!(get(&stores, "t1").await.title.as_deref(), Some("T"));
}

/// Whatever the end itself says: the question of an earlier run is still open after a later one was undone.
pub async fn after_a_rollback_the_thread_stands_where_its_newest_checkpoint_says(
    open: impl AsyncFn() -> ThreadStores,
) {
    let stores = open().await;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let asked = PendingTask {
        interrupts: vec![json!({"value": "sure?"})],
        ..PendingTask::new("task", "tools")
    };
    for (n, (due, expected)) in [
        (vec![], ThreadStatus::Idle),
        (vec![asked], ThreadStatus::Interrupted),
    ]
    .into_iter()
    .enumerate()
    {
        let (kept, undone) = (format!("kept{n}"), format!("undone{n}"));
        let mut write =
            checkpoint_write("t1", Some(&kept), n as u64 * 2 + 1, &mut state, &mut tail);
        write.meta.next = due;
        let first = stores
            .runs
            .create
            .admit(new_run(&kept, "t1"))
            .await
            .expect("admitted")
            .run;
        let end = Some(end_in(RunStatus::Interrupted));
        stores
            .runs
            .commit
            .commit(RunCommit {
                checkpoints: vec![write],
                end,
                ..commit_of(&first)
            })
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
        stores
            .runs
            .commit
            .commit(RunCommit {
                checkpoints: vec![write],
                ..commit_of(&second)
            })
            .await
            .expect("committed");
        let mut end = end_in(RunStatus::Error);
        end.discard_checkpoints = true;
        stores
            .runs
            .commit
            .commit(RunCommit {
                end: Some(end),
                ..commit_of(&second)
            })
            .await
            .expect("ended");
        assert_eq!(get(&stores, "t1").await.status, expected, "round {n}");
    }
}

/// And stays as it was.
pub async fn a_busy_thread_is_not_deleted(open: impl AsyncFn() -> ThreadStores) {
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

/// Runs, events, checkpoints and log go with it; its owner may use the id again.
pub async fn a_deleted_thread_leaves_nothing_and_its_id_is_not_given_to_others(
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
    stores.runs.commit.commit(commit).await.expect("ended");
    assert_eq!(
        stores.threads.delete(&thread("t1"), &ann()).await,
        Ok(Deleted::Done)
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
    let theirs = NewThread {
        user_id: Some("bob".to_owned()),
        ..new_thread("t1", json!({}))
    };
    assert_eq!(stores.threads.create(theirs).await, Ok(Created::Taken));
    let their_run = NewRun {
        user_id: Some("bob".to_owned()),
        ..new_run("r2", "t1")
    };
    assert!(stores.runs.create.admit(their_run).await.is_err());
    make(&stores, new_thread("t1", json!({}))).await;
}
