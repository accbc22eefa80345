//! What thread stores promise about finding threads, about lists, and about threads whose time is over.

use chrono::TimeDelta;
use harness::messages::Message;
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{NewRun, RunCommit};
use harness::runtime::runs::{Expiry, RunStatus, ThreadTtl};
use harness::state::{StateUpdate, ThreadState};
use harness::testkit::{USER, at, checkpoint_write, commit_of, end_in, new_run, object, thread};
use serde_json::{Map, Value, json};

use super::{ThreadStores, ann, bob, by_metadata, found, get, make, new_thread};
use crate::threads::{
    AssistantFilter, Deleted, NewThread, Swept, ThreadPatch, ThreadSearch, ThreadSort,
};

/// One test per promise about searches and lists of threads.
#[macro_export]
macro_rules! thread_search_suite {
    ($attrs:tt $open:expr) => {
        harness::promises! { $attrs $open, [$crate::testkit::thread_search]
            metadata_is_found_by_containment
            changed_metadata_is_found_as_it_is_now
            metadata_of_any_size_is_kept_and_found
            threads_are_found_by_graph_and_by_assistant
            threads_are_found_by_their_values
            common_and_rare_filters_find_the_same
            filters_that_thousands_pass_find_the_newest
            every_order_is_total
            the_time_of_the_state_moves_with_the_state
            contents_come_for_all_threads_at_once
            the_past_is_forgotten_and_the_present_stays
            threads_go_when_their_time_is_over
            only_the_newest_state_stays_of_threads_that_keep_it
            a_run_says_how_long_the_thread_stays_that_it_makes
        }
    };
}

/// Into objects and lists.
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
    for (wanted, expected) in [
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
        let search = by_metadata(wanted.clone());
        assert_eq!(found(&stores, search.clone()).await, expected, "{wanted}");
        assert_eq!(
            stores.threads.count(&search, &ann()).await,
            Ok(expected.len() as u64),
            "{wanted}"
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

/// Not as it was.
pub async fn changed_metadata_is_found_as_it_is_now(open: impl AsyncFn() -> ThreadStores) {
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
    for (wanted, expected) in [
        (json!({"a": [1]}), 0),
        (json!({"a": [2]}), 1),
        (json!({"a": [4]}), 1),
        (json!({"b": 1}), 1),
        (json!({"c": {"x": 1}}), 0),
        (json!({"c": {"y": 1}}), 1),
    ] {
        assert_eq!(
            found(&stores, by_metadata(wanted.clone())).await.len(),
            expected,
            "{wanted}"
        );
    }
}

/// Long texts, long keys, many entries.
pub async fn metadata_of_any_size_is_kept_and_found(open: impl AsyncFn() -> ThreadStores) {
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

/// Of the first run, or as the metadata says; an assistant that comes with its graph is found by either.
pub async fn threads_are_found_by_graph_and_by_assistant(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    make(&stores, new_thread("t0", json!({"graph_id": "lead_agent"}))).await;
    for (id, named) in [("t1", None), ("t2", Some("own")), ("t3", Some("made"))] {
        let mut run = new_run(&format!("r-{id}"), id);
        run.metadata.shift_remove("assistant_id");
        run.metadata
            .extend(named.map(|named| ("assistant_id".to_owned(), json!(named))));
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

/// A finished run that leaves these channels and one message.
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
    let held = stores
        .runs
        .checkpoints
        .get(&thread(id), None)
        .await
        .expect("read");
    let (mut state, mut tail) =
        held.map_or_else(Default::default, |held| (held.state, held.log_tail));
    let mut update = StateUpdate::messages([
        Message::human(format!("message {n}")).with(|body| body.id = Some(format!("m{n}")))
    ]);
    update.channels.extend(object(channels));
    state
        .apply(update, &harness::ids::SeededIds::new(n))
        .expect("reduced");
    let write = checkpoint_write(id, Some(run.run_id.as_str()), n, &mut state, &mut tail);
    let mut end = end_in(status);
    end.title = state.title().map(str::to_owned);
    stores
        .runs
        .commit
        .commit(RunCommit {
            checkpoints: vec![write],
            end: Some(end),
            ..commit_of(&run)
        })
        .await
        .expect("ended");
    state
}

/// As they are now.
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

/// However many threads pass one of them.
pub async fn common_and_rare_filters_find_the_same(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    for n in 0..130 {
        let new = new_thread(
            &format!("t{n:03}"),
            json!({"common": true, "rare": n % 50 == 0, "n": n}),
        );
        make(&stores, NewThread { at: at(n), ..new }).await;
    }
    let by = |metadata: Value| ThreadSearch {
        metadata: object(metadata),
        ..ThreadSearch::default()
    };
    assert_eq!(
        found(&stores, by(json!({"common": true, "rare": true}))).await,
        ["t100", "t050", "t000"]
    );
    assert_eq!(
        found(
            &stores,
            ThreadSearch {
                ids: vec![thread("t050"), thread("t051")],
                ..by(json!({"rare": true}))
            }
        )
        .await,
        ["t050"]
    );
    let page = ThreadSearch {
        offset: 99,
        ..by(json!({"common": true}))
    };
    let rest: Vec<String> = (0..31).rev().map(|n| format!("t{n:03}")).collect();
    assert_eq!(found(&stores, page.clone()).await, rest);
    assert_eq!(stores.threads.count(&page, &ann()).await, Ok(130));
    assert_eq!(
        stores
            .threads
            .count(&by(json!({"common": true, "rare": false})), &ann())
            .await,
        Ok(127)
    );
}

/// Wherever in the order they stand, and however far the page is.
pub async fn filters_that_thousands_pass_find_the_newest(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let make_one = |n: i64| {
        make(
            &stores,
            NewThread {
                at: at(n),
                ..new_thread(&format!("t{n:04}"), json!({"all": true, "old": n < 2_030}))
            },
        )
    };
    for some in 0..31_i64 {
        futures_util::future::join_all((some * 100..(some + 1) * 100).map(make_one)).await;
    }
    for (wanted, newest, offset) in [
        ("all", 3_099, 0),
        ("all", 3_099, 3),
        ("all", 3_099, 2_500),
        ("old", 2_029, 0),
        ("old", 2_029, 1_500),
    ] {
        let order = ThreadSearch {
            sort_by: ThreadSort::UpdatedAt,
            ascending: false,
            ..by_metadata(json!({wanted: true}))
        };
        let search = ThreadSearch {
            limit: 5,
            offset,
            ..order
        };
        let expected: Vec<String> = (0..5)
            .map(|n| format!("t{:04}", newest - offset as i64 - n))
            .collect();
        let page = stores.threads.search(&search, &ann()).await.expect("read");
        assert_eq!(
            page.iter()
                .map(|record| record.thread_id.to_string())
                .collect::<Vec<_>>(),
            expected,
            "{wanted} {offset}"
        );
        assert_eq!(
            stores.threads.count(&search, &ann()).await,
            Ok(newest as u64 + 1),
            "{wanted}"
        );
    }
}

/// Pages do not overlap and leave nothing out.
pub async fn every_order_is_total(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    for n in 0..7 {
        make(
            &stores,
            NewThread {
                at: at(n / 3),
                ..new_thread(&format!("t{n}"), json!({}))
            },
        )
        .await;
    }
    for sort_by in [
        ThreadSort::UpdatedAt,
        ThreadSort::StateUpdatedAt,
        ThreadSort::CreatedAt,
        ThreadSort::ThreadId,
        ThreadSort::Status,
    ] {
        for ascending in [true, false] {
            let all = ThreadSearch {
                sort_by,
                ascending,
                ..ThreadSearch::default()
            };
            let whole = found(&stores, all.clone()).await;
            assert_eq!(whole.len(), 7);
            for offset in 0..7 {
                let search = ThreadSearch {
                    offset,
                    limit: 2,
                    ..all.clone()
                };
                let page = stores.threads.search(&search, &ann()).await.expect("read");
                let page: Vec<_> = page
                    .into_iter()
                    .map(|record| record.thread_id.to_string())
                    .collect();
                assert_eq!(
                    page,
                    whole
                        .iter()
                        .skip(offset)
                        .take(2)
                        .cloned()
                        .collect::<Vec<_>>(),
                    "{sort_by:?}"
                );
            }
        }
    }
}

/// And not with the metadata.
pub async fn the_time_of_the_state_moves_with_the_state(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let made = make(&stores, new_thread("t1", json!({}))).await;
    assert_eq!(made.state_updated_at, at(0));
    let touch = ThreadPatch {
        touch: true,
        ..ThreadPatch::default()
    };
    let patched = stores
        .threads
        .patch(&thread("t1"), touch, &ann(), at(1))
        .await
        .expect("written")
        .expect("there");
    assert_eq!(
        (patched.updated_at, patched.state_updated_at),
        (at(1), at(0))
    );
    ended_with(&stores, "t1", 1, json!({}), RunStatus::Interrupted).await;
    let ended = get(&stores, "t1").await;
    assert_eq!((ended.updated_at, ended.state_updated_at), (at(5), at(5)));
}

/// The newest state and the newest end of each.
pub async fn contents_come_for_all_threads_at_once(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let first = ended_with(&stores, "t1", 1, json!({"title": "a"}), RunStatus::Error).await;
    ended_with(&stores, "t2", 2, json!({}), RunStatus::Error).await;
    // Messages that were replaced and removed leave the log out of order.
    let mut second = ended_with(
        &stores,
        "t2",
        3,
        json!({"title": "b"}),
        RunStatus::Interrupted,
    )
    .await;
    let mut tail = 2;
    let changed = [
        Message::remove("m3"),
        Message::human("new").with(|body| body.id = Some("m2".to_owned())),
        Message::ai("more"),
    ];
    second
        .apply(
            StateUpdate::messages(changed),
            &harness::ids::SeededIds::new(9),
        )
        .expect("reduced");
    stores
        .runs
        .checkpoints
        .put(checkpoint_write("t2", None, 4, &mut second, &mut tail))
        .await
        .expect("written");
    stores
        .runs
        .create
        .admit(NewRun {
            created_at: at(9),
            ..new_run("r-busy", "t2")
        })
        .await
        .expect("admitted");
    make(&stores, new_thread("t3", json!({}))).await;
    let ids = ["t1", "t2", "t3", "t9"].map(thread);
    let contents = stores.threads.contents(&ids).await.expect("read");
    for (id, state, status) in [
        ("t1", &first, RunStatus::Error),
        ("t2", &second, RunStatus::Interrupted),
    ] {
        let content = &contents[&thread(id)];
        let shown = content.state.as_ref().expect("a state");
        let alone = stores
            .runs
            .checkpoints
            .get(&thread(id), None)
            .await
            .expect("read")
            .expect("there");
        let channels: Map<String, Value> = state
            .channels()
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        assert_eq!(
            (&shown.meta, &shown.channels),
            (&alone.meta, &channels),
            "{id}"
        );
        let messages: Vec<Message> = serde_json::from_str(shown.messages.get()).expect("messages");
        assert_eq!(messages, state.messages(), "{id}");
        assert_eq!(
            content.last_end.as_ref().map(|end| end.status),
            Some(status),
            "{id}"
        );
    }
    for id in ["t3", "t9"] {
        assert!(
            contents
                .get(&thread(id))
                .is_none_or(|content| content.state.is_none() && content.last_end.is_none()),
            "{id}"
        );
    }
    assert_eq!(
        stores
            .threads
            .contents(&[])
            .await
            .map(|contents| contents.len()),
        Ok(0)
    );
}

/// Unless a run is active.
pub async fn the_past_is_forgotten_and_the_present_stays(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    ended_with(
        &stores,
        "t1",
        1,
        json!({"title": "a"}),
        RunStatus::Interrupted,
    )
    .await;
    let state = ended_with(
        &stores,
        "t1",
        2,
        json!({"title": "b"}),
        RunStatus::Interrupted,
    )
    .await;
    assert_eq!(
        stores.threads.forget_past(&thread("t1"), &bob()).await,
        Ok(Deleted::NotFound)
    );
    assert_eq!(
        stores.threads.forget_past(&thread("t1"), &ann()).await,
        Ok(Deleted::Done)
    );
    let all = harness::runtime::checkpoint::HistoryQuery {
        limit: 9,
        ..Default::default()
    };
    let left = stores
        .runs
        .checkpoints
        .list(&thread("t1"), &all)
        .await
        .expect("read");
    assert_eq!((left.len(), &left[0].state), (1, &state));
    stores
        .runs
        .create
        .admit(new_run("r-busy", "t1"))
        .await
        .expect("admitted");
    assert_eq!(
        stores.threads.forget_past(&thread("t1"), &ann()).await,
        Ok(Deleted::Busy)
    );
}

fn seconds(n: i64, then: Expiry) -> Option<ThreadTtl> {
    Some(ThreadTtl {
        after: TimeDelta::seconds(n),
        then,
    })
}

/// Counted from their last change; busy ones stay.
pub async fn threads_go_when_their_time_is_over(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let ttl = seconds(10, Expiry::Delete);
    for id in ["t1", "t2", "t3", "t4"] {
        make(
            &stores,
            NewThread {
                ttl,
                ..new_thread(id, json!({"mark": 1}))
            },
        )
        .await;
    }
    make(&stores, new_thread("t5", json!({}))).await;
    assert_eq!(
        get(&stores, "t1").await.expires_at(),
        Some(at(0) + TimeDelta::seconds(10))
    );
    let touch = ThreadPatch {
        touch: true,
        ..ThreadPatch::default()
    };
    stores
        .threads
        .patch(&thread("t2"), touch, &ann(), at(8))
        .await
        .expect("written");
    stores
        .runs
        .create
        .admit(new_run("r3", "t3"))
        .await
        .expect("admitted");
    let longer = ThreadPatch {
        ttl: seconds(3600, Expiry::Delete),
        ..ThreadPatch::default()
    };
    stores
        .threads
        .patch(&thread("t4"), longer, &ann(), at(8))
        .await
        .expect("written");
    assert_eq!(stores.threads.sweep(at(9), 100).await, Ok(Swept::default()));
    let swept = stores
        .threads
        .sweep(at(12), 100)
        .await
        .expect("written")
        .gone;
    assert_eq!(
        swept
            .iter()
            .map(|gone| (gone.thread_id.as_str(), gone.user_id.as_deref()))
            .collect::<Vec<_>>(),
        [("t1", Some(USER))]
    );
    assert_eq!(
        stores.threads.get(&thread("t1"), &Owner::None).await,
        Ok(None)
    );
    assert_eq!(
        found(&stores, by_metadata(json!({"mark": 1}))).await,
        ["t2", "t3", "t4"]
    );
}

/// Once after each change, and nothing else of the thread changes.
pub async fn only_the_newest_state_stays_of_threads_that_keep_it(
    open: impl AsyncFn() -> ThreadStores,
) {
    let stores = open().await;
    let ttl = seconds(10, Expiry::KeepLatest);
    make(
        &stores,
        NewThread {
            ttl,
            ..new_thread("t1", json!({}))
        },
    )
    .await;
    for n in [1, 2] {
        ended_with(
            &stores,
            "t1",
            n,
            json!({"title": n.to_string()}),
            RunStatus::Interrupted,
        )
        .await;
    }
    let before = get(&stores, "t1").await;
    assert_eq!(before.ttl, ttl);
    let end = before.expires_at().expect("an end");
    let states = async || {
        let all = harness::runtime::checkpoint::HistoryQuery {
            limit: 9,
            ..Default::default()
        };
        stores
            .runs
            .checkpoints
            .list(&thread("t1"), &all)
            .await
            .expect("read")
    };
    assert_eq!(
        stores
            .threads
            .sweep(end - TimeDelta::microseconds(1), 100)
            .await,
        Ok(Swept::default())
    );
    let newest = states().await.swap_remove(0);
    let forgot = Swept {
        forgot: 1,
        ..Swept::default()
    };
    assert_eq!(stores.threads.sweep(end, 100).await, Ok(forgot.clone()));
    let left = states().await;
    assert_eq!(
        (left.len(), &left[0].state, get(&stores, "t1").await),
        (1, &newest.state, before)
    );
    assert_eq!(
        stores.threads.sweep(end + TimeDelta::days(1), 100).await,
        Ok(Swept::default())
    );
    let touch = ThreadPatch {
        touch: true,
        ..ThreadPatch::default()
    };
    stores
        .threads
        .patch(&thread("t1"), touch, &ann(), end)
        .await
        .expect("written");
    assert_eq!(
        stores.threads.sweep(end + TimeDelta::seconds(9), 100).await,
        Ok(Swept::default())
    );
    assert_eq!(
        stores
            .threads
            .sweep(end + TimeDelta::seconds(10), 100)
            .await,
        Ok(forgot)
    );
}

/// A thread that is there already stays as long as was said of it.
pub async fn a_run_says_how_long_the_thread_stays_that_it_makes(
    open: impl AsyncFn() -> ThreadStores,
) {
    let stores = open().await;
    let run = |id: &str, on: &str, thread_ttl| NewRun {
        thread_ttl,
        ..new_run(id, on)
    };
    make(&stores, new_thread("t1", json!({}))).await;
    for then in [Expiry::Delete, Expiry::KeepLatest] {
        let (on, ttl) = (then.as_str(), seconds(10, then));
        stores
            .runs
            .create
            .admit(run(on, on, ttl))
            .await
            .expect("admitted");
        assert_eq!(get(&stores, on).await.ttl, ttl);
    }
    stores
        .runs
        .create
        .admit(run("r1", "t1", seconds(10, Expiry::Delete)))
        .await
        .expect("admitted");
    stores
        .runs
        .create
        .admit(run("r2", "t2", None))
        .await
        .expect("admitted");
    assert_eq!(
        (get(&stores, "t1").await.ttl, get(&stores, "t2").await.ttl),
        (None, None)
    );
}
