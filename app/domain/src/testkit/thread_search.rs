//! Contract suite of thread searches, lists, retention and expiry.

mod pages;
mod retention;

use deerflow_core::messages::Message;
use deerflow_core::state::{StateUpdate, ThreadState};
use deerflow_runtime::runs::RunStatus;
use deerflow_runtime::runs::store::{NewRun, RunCommit};
use deerflow_runtime::testkit::{
    at, checkpoint_write, commit_of, end_in, new_run, object, thread, with_request,
};
use serde_json::{Value, json};

use super::{ThreadStores, ann, bob, by_metadata, found, get, make, new_thread};
use crate::threads::{AssistantFilter, ThreadPatch, ThreadSearch, ThreadSort};

pub use pages::{
    common_and_rare_filters_find_the_same, contents_are_read_for_many_threads,
    every_sort_order_is_total, filters_matching_thousands_return_newest,
    state_time_follows_state_changes,
};
pub use retention::{
    deleting_past_keeps_newest_checkpoint, expired_threads_are_deleted,
    expired_threads_are_trimmed_to_newest_state, run_sets_ttl_of_thread_it_creates,
};

/// Generates one test per requirement of thread searches and lists.
#[macro_export]
macro_rules! thread_search_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::thread_search]
            metadata_is_found_by_containment
            changed_metadata_is_found_by_new_value
            large_metadata_is_stored_and_found
            threads_are_found_by_graph_and_by_assistant
            threads_are_found_by_their_values
            common_and_rare_filters_find_the_same
            filters_matching_thousands_return_newest
            every_sort_order_is_total
            state_time_follows_state_changes
            contents_are_read_for_many_threads
            deleting_past_keeps_newest_checkpoint
            expired_threads_are_deleted
            expired_threads_are_trimmed_to_newest_state
            run_sets_ttl_of_thread_it_creates
        }
    };
}

/// Containment applies inside objects and lists.
pub async fn metadata_is_found_by_containment(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    make(
        &stores,
        new_thread(
            "t0",
            json!({"of": {"team": "a", "n": 1}, "tags": ["x", "y"], "list": [{"p": 1, "q": 2}]}),
        ),
    )
    .await;
    make(
        &stores,
        new_thread(
            "t1",
            json!({"of": {"team": "b"}, "tags": ["y"], "list": [{"p": 1}, {"q": 2}]}),
        ),
    )
    .await;
    make(
        &stores,
        new_thread("t2", json!({"of": "a", "tags": "y", "list": []})),
    )
    .await;
    for (filter, expected) in [
        (json!({"of": {"team": "a"}}), vec!["t0"]),
        (json!({"of": {}}), vec!["t0", "t1"]),
        (json!({"tags": ["y"]}), vec!["t0", "t1"]),
        (json!({"tags": ["y", "x"]}), vec!["t0"]),
        (json!({"tags": []}), vec!["t0", "t1"]),
        (json!({"list": [{"p": 1}]}), vec!["t0", "t1"]),
        (json!({"list": [{"p": 1, "q": 2}]}), vec!["t0"]),
        (json!({"of": "a"}), vec!["t2"]),
        (json!({}), vec!["t0", "t1", "t2"]),
    ] {
        let search = by_metadata(filter.clone());
        assert_eq!(found(&stores, search.clone()).await, expected, "{filter}");
        assert_eq!(
            stores.threads.count(&search, &ann()).await,
            Ok(expected.len() as u64),
            "{filter}"
        );
    }
    let second = ThreadSearch {
        offset: 1,
        ..by_metadata(json!({"list": [{"p": 1}]}))
    };
    assert_eq!(found(&stores, second).await, ["t1"]);
    assert_eq!(
        stores
            .threads
            .count(&by_metadata(json!({"tags": ["y"]})), &bob())
            .await,
        Ok(0)
    );
}

/// The previous metadata is no longer found.
pub async fn changed_metadata_is_found_by_new_value(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    make(
        &stores,
        new_thread("t1", json!({"a": [1, 2, 3], "b": 1, "c": {"x": 1}})),
    )
    .await;
    let patch = ThreadPatch {
        metadata: object(json!({"a": [2, 4], "c": {"y": 1}})),
        ..ThreadPatch::default()
    };
    stores
        .threads
        .patch(&thread("t1"), patch, &ann(), at(1))
        .await
        .expect("written");
    for (filter, expected) in [
        (json!({"a": [1]}), 0),
        (json!({"a": [2]}), 1),
        (json!({"a": [4]}), 1),
        (json!({"b": 1}), 1),
        (json!({"c": {"x": 1}}), 0),
        (json!({"c": {"y": 1}}), 1),
    ] {
        assert_eq!(
            found(&stores, by_metadata(filter.clone())).await.len(),
            expected,
            "{filter}"
        );
    }
}

/// Covers long texts, long keys and many entries.
pub async fn large_metadata_is_stored_and_found(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let (text, key) = ("ü".repeat(100_000), "k".repeat(20_000));
    make(
        &stores,
        new_thread("t1", json!({"text": text, key.clone(): 1})),
    )
    .await;
    make(
        &stores,
        new_thread(
            "t2",
            json!({"text": format!("{text}."), "many": (0..5_000).collect::<Vec<_>>()}),
        ),
    )
    .await;
    assert_eq!(
        found(&stores, by_metadata(json!({"text": text}))).await,
        ["t1"]
    );
    assert_eq!(found(&stores, by_metadata(json!({key: 1}))).await, ["t1"]);
    assert_eq!(
        get(&stores, "t2").await.metadata["many"]
            .as_array()
            .map(Vec::len),
        Some(5_000)
    );
}

/// Uses the first run, or `graph_id` in the metadata; a graph's default assistant is found by
/// either.
pub async fn threads_are_found_by_graph_and_by_assistant(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    make(&stores, new_thread("t0", json!({"graph_id": "lead_agent"}))).await;
    for (id, named) in [("t1", None), ("t2", Some("own")), ("t3", Some("made"))] {
        let run = with_request(new_run(&format!("r-{id}"), id), |request| {
            request.metadata.shift_remove("assistant_id");
            request
                .metadata
                .extend(named.map(|named| ("assistant_id".to_owned(), json!(named))));
        });
        stores.runs.create.admit(run).await.expect("admitted");
    }
    let by_id = |search: ThreadSearch| ThreadSearch {
        sort_by: ThreadSort::ThreadId,
        ascending: true,
        ..search
    };
    let graph = |name: &str| {
        by_id(ThreadSearch {
            graph: Some(name.to_owned()),
            ..ThreadSearch::default()
        })
    };
    let assistant = |id: &str, graph: Option<&str>| {
        let filter = AssistantFilter {
            id: id.to_owned(),
            graph: graph.map(str::to_owned),
        };
        by_id(ThreadSearch {
            assistant: Some(filter),
            ..ThreadSearch::default()
        })
    };
    assert_eq!(
        found(&stores, graph("lead_agent")).await,
        ["t0", "t1", "t2", "t3"]
    );
    assert_eq!(found(&stores, graph("other")).await, [""; 0]);
    assert_eq!(found(&stores, assistant("made", None)).await, ["t3"]);
    assert_eq!(
        found(&stores, assistant("own", Some("lead_agent"))).await,
        ["t1", "t2"]
    );
    assert_eq!(
        stores
            .threads
            .count(&assistant("own", Some("lead_agent")), &ann())
            .await,
        Ok(2)
    );
    assert_eq!(
        get(&stores, "t3").await.assistant_id.as_deref(),
        Some("made")
    );
}

/// Stores a finished run that leaves these channels and one message.
async fn ended_with(
    stores: &ThreadStores,
    id: &str,
    n: u64,
    channels: Value,
    status: RunStatus,
) -> ThreadState {
    let new = NewRun {
        created_at: at(2),
        at: at(2),
        ..new_run(&format!("r-{id}-{n}"), id)
    };
    let run = stores.runs.create.admit(new).await.expect("admitted").run;
    let newest = stores
        .runs
        .checkpoints
        .get(&thread(id), None)
        .await
        .expect("read");
    let (mut state, mut tail) =
        newest.map_or_else(Default::default, |newest| (newest.state, newest.log_tail));
    let mut update = StateUpdate::messages([
        Message::human(format!("message {n}")).with(|body| body.id = Some(format!("m{n}")))
    ]);
    update.channels.extend(object(channels));
    state
        .apply(update, &deerflow_core::ids::SeededIds::new(n))
        .expect("reduced");
    let write = checkpoint_write(id, Some(run.run_id.as_str()), n, &mut state, &mut tail);
    let mut end = end_in(status);
    end.title = state.title().map(str::to_owned);
    let commit = RunCommit {
        checkpoints: vec![write],
        end: Some(end),
        ..commit_of(&run)
    };
    stores
        .runs
        .commit
        .commit(commit.into())
        .await
        .expect("ended");
    state
}

/// Uses the current values.
pub async fn threads_are_found_by_their_values(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    ended_with(
        &stores,
        "t1",
        1,
        json!({"title": "old", "artifacts": ["a", "b"]}),
        RunStatus::Interrupted,
    )
    .await;
    ended_with(
        &stores,
        "t1",
        2,
        json!({"title": "new"}),
        RunStatus::Interrupted,
    )
    .await;
    ended_with(
        &stores,
        "t2",
        3,
        json!({"title": "new", "goal": {"text": "x"}}),
        RunStatus::Interrupted,
    )
    .await;
    make(&stores, new_thread("t3", json!({}))).await;
    let by = |values: Value| ThreadSearch {
        values: object(values),
        sort_by: ThreadSort::ThreadId,
        ascending: true,
        ..ThreadSearch::default()
    };
    assert_eq!(
        found(&stores, by(json!({"title": "new"}))).await,
        ["t1", "t2"]
    );
    assert_eq!(found(&stores, by(json!({"title": "old"}))).await, [""; 0]);
    assert_eq!(
        found(&stores, by(json!({"artifacts": ["b"]}))).await,
        ["t1"]
    );
    assert_eq!(
        found(&stores, by(json!({"goal": {"text": "x"}, "title": "new"}))).await,
        ["t2"]
    );
    assert_eq!(
        found(
            &stores,
            ThreadSearch {
                offset: 1,
                ..by(json!({"title": "new"}))
            }
        )
        .await,
        ["t2"]
    );
    assert_eq!(
        stores
            .threads
            .count(&by(json!({"title": "new"})), &ann())
            .await,
        Ok(2)
    );
}
