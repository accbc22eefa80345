//! Contract of large results, sort orders and thread contents.

use deerflow_core::messages::Message;
use deerflow_core::state::StateUpdate;
use deerflow_runtime::runs::RunStatus;
use deerflow_runtime::runs::store::NewRun;
use deerflow_runtime::testkit::{at, checkpoint_write, new_run, object, thread};
use serde_json::{Map, Value, json};

use super::ended_with;
use crate::testkit::{ThreadStores, ann, by_metadata, found, get, make, new_thread};
use crate::threads::{NewThread, ThreadPatch, ThreadSearch, ThreadSort};

/// Results do not depend on how many threads match each filter.
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

/// Independent of their position in the order and of the page.
pub async fn filters_matching_thousands_return_newest(open: impl AsyncFn() -> ThreadStores) {
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
    for (filter, newest, offset) in [
        ("all", 3_099, 0),
        ("all", 3_099, 3),
        ("all", 3_099, 2_500),
        ("old", 2_029, 0),
        ("old", 2_029, 1_500),
    ] {
        let order = ThreadSearch {
            sort_by: ThreadSort::UpdatedAt,
            ascending: false,
            ..by_metadata(json!({filter: true}))
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
            "{filter} {offset}"
        );
        assert_eq!(
            stores.threads.count(&search, &ann()).await,
            Ok(newest as u64 + 1),
            "{filter}"
        );
    }
}

/// Pages neither overlap nor omit threads.
pub async fn every_sort_order_is_total(open: impl AsyncFn() -> ThreadStores) {
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

/// The state time does not change with the metadata.
pub async fn state_time_follows_state_changes(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let created = make(&stores, new_thread("t1", json!({}))).await;
    assert_eq!(created.state_updated_at, at(0));
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

/// Returns the newest state and the newest run end of each thread.
pub async fn contents_are_read_for_many_threads(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let first = ended_with(&stores, "t1", 1, json!({"title": "a"}), RunStatus::Error).await;
    ended_with(&stores, "t2", 2, json!({}), RunStatus::Error).await;
    // Replaced and removed messages leave the log out of order.
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
        Message::ai("more ".repeat(100_000)),
    ];
    second
        .apply(
            StateUpdate::messages(changed),
            &deerflow_core::ids::SeededIds::new(9),
        )
        .expect("reduced");
    // Histories are no part of the conversation.
    let turn = ["asked", "answered"].map(Message::human);
    second.histories_mut().push("agent", turn, 9);
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
        let stored = content.state.as_ref().expect("a state");
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
            (&stored.meta, &stored.channels),
            (&alone.meta, &channels),
            "{id}"
        );
        let messages: Vec<Message> = serde_json::from_str(stored.messages.get()).expect("messages");
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
