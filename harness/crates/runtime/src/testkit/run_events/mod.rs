//! Contract of the journal of run events.

mod deletion;

use serde_json::json;

use super::{RunStores, USER, all_events, at_once, event, object, run, thread};
use crate::runs::store::{EventQuery, NewRunEvent, Order, StoreError, category};
use deerflow_core::actor_context::{NoActor, Owner};

pub use deletion::{
    deleting_thread_events_leaves_other_threads_unchanged, seq_is_not_reused_after_deletion,
};

/// Generates one test per guarantee of the journal.
#[macro_export]
macro_rules! run_events_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::run_events]
            seq_counts_from_one_per_thread
            concurrent_batches_stay_contiguous_with_unique_seqs
            any_json_is_read_back_unchanged
            filters_combine
            newest_page_is_in_ascending_order
            only_messages_are_counted
            events_of_another_user_are_hidden
            seq_is_not_reused_after_deletion
            deleting_thread_events_leaves_other_threads_unchanged
            a_large_batch_is_one_append
        }
    };
}

async fn list(stores: &RunStores, on: &str, query: EventQuery) -> Vec<(u64, NewRunEvent)> {
    let events = stores
        .events
        .list(&thread(on), &query, &Owner::None)
        .await
        .expect("read");
    events
        .into_iter()
        .map(|event| (event.seq, event.event))
        .collect()
}

async fn seqs(stores: &RunStores, on: &str, query: EventQuery) -> Vec<u64> {
    list(stores, on, query)
        .await
        .into_iter()
        .map(|(seq, _)| seq)
        .collect()
}

/// A batch may contain events of several threads.
pub async fn seq_counts_from_one_per_thread(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    assert_eq!(stores.events.append(vec![]).await, Ok(vec![]));
    let batch = vec![
        event("t1", "r1", "a"),
        event("t2", "r2", "x"),
        event("t1", "r1", "b"),
    ];
    assert_eq!(stores.events.append(batch.clone()).await, Ok(vec![1, 1, 2]));
    assert_eq!(
        stores.events.append(vec![event("t1", "r3", "c")]).await,
        Ok(vec![3])
    );
    assert_eq!(
        list(&stores, "t1", all_events()).await,
        [
            (1, batch[0].clone()),
            (2, batch[2].clone()),
            (3, event("t1", "r3", "c"))
        ]
    );
    assert_eq!(
        list(&stores, "t2", all_events()).await,
        [(1, batch[1].clone())]
    );
    assert_eq!(list(&stores, "t3", all_events()).await, []);
}

/// Each caller's batch is consecutive, and a later append of the same caller has later positions.
pub async fn concurrent_batches_stay_contiguous_with_unique_seqs(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    let appended = at_once((0..20).map(|n| {
        let stores = stores.clone();
        async move {
            let mut appended = Vec::new();
            for _ in 0..5 {
                let batch = (0..3)
                    .map(|k| event("t1", &format!("r{n}"), &k.to_string()))
                    .collect();
                appended.push(stores.events.append(batch).await.expect("appended"));
            }
            appended
        }
    }))
    .await;
    for one in &appended {
        assert!(
            one.iter()
                .all(|batch| batch[1] == batch[0] + 1 && batch[2] == batch[1] + 1),
            "{one:?}"
        );
        assert!(one.is_sorted_by_key(|batch| batch[0]), "{one:?}");
    }
    let mut all: Vec<u64> = appended.into_iter().flatten().flatten().collect();
    all.sort_unstable();
    assert_eq!(all, (1..=300).collect::<Vec<_>>());
    assert_eq!(seqs(&stores, "t1", all_events()).await, all);
}

/// Numbers, the order of keys, and characters that databases reject are retained.
pub async fn any_json_is_read_back_unchanged(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let contents = [
        json!(null),
        json!("line\nbreak \u{0} \u{2028} \"quoted\" \\ 😀"),
        json!([1, 1.0, -0.5, 1e300, i64::MIN, u64::MAX, true]),
        json!({"z": 1, "a": {"deep": [[], {}]}, "": ""}),
        json!("x".repeat(200_000)),
    ];
    let batch: Vec<NewRunEvent> = contents
        .iter()
        .map(|content| NewRunEvent {
            content: content.clone().into(),
            ..event("t1", "r1", "")
        })
        .collect();
    stores.events.append(batch).await.expect("appended");
    let unusual = NewRunEvent {
        metadata: object(json!({"b": null, "a": "\u{0}"})),
        user_id: None,
        ..event("t1", "r1", "")
    };
    stores
        .events
        .append(vec![unusual.clone()])
        .await
        .expect("appended");
    let read = list(&stores, "t1", all_events()).await;
    assert_eq!(
        read.iter()
            .take(5)
            .map(|(_, event)| event.content.to_string())
            .collect::<Vec<_>>(),
        contents.map(|content| content.to_string())
    );
    assert_eq!(read[5].1, unusual);
}

/// Every returned event satisfies all conditions.
pub async fn filters_combine(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let kinds = [
        ("run.start", category::TRACE),
        ("llm.human.input", category::MESSAGE),
        ("llm.ai.response", category::MESSAGE),
    ];
    for id in ["r1", "r2"] {
        let batch = kinds.map(|(kind, category)| NewRunEvent {
            event_type: kind.to_owned(),
            category: category.to_owned(),
            ..event("t1", id, "")
        });
        stores
            .events
            .append(batch.to_vec())
            .await
            .expect("appended");
    }
    let messages = EventQuery {
        category: Some(category::MESSAGE.to_owned()),
        ..all_events()
    };
    assert_eq!(seqs(&stores, "t1", messages.clone()).await, [2, 3, 5, 6]);
    assert_eq!(
        seqs(
            &stores,
            "t1",
            EventQuery {
                run_id: Some(run("r2")),
                ..messages.clone()
            }
        )
        .await,
        [5, 6]
    );
    assert_eq!(
        seqs(
            &stores,
            "t1",
            EventQuery {
                event_types: vec!["llm.ai.response".to_owned()],
                ..messages.clone()
            }
        )
        .await,
        [3, 6]
    );
    let types = vec!["run.start".to_owned(), "llm.human.input".to_owned()];
    assert_eq!(
        seqs(
            &stores,
            "t1",
            EventQuery {
                event_types: types,
                ..all_events()
            }
        )
        .await,
        [1, 2, 4, 5]
    );
    assert_eq!(
        seqs(
            &stores,
            "t1",
            EventQuery {
                after_seq: Some(2),
                before_seq: Some(6),
                ..messages
            }
        )
        .await,
        [3, 5]
    );
    assert_eq!(
        seqs(
            &stores,
            "t1",
            EventQuery {
                after_seq: Some(u64::MAX),
                ..all_events()
            }
        )
        .await,
        [0; 0]
    );
    assert_eq!(
        seqs(
            &stores,
            "t1",
            EventQuery {
                limit: 0,
                ..all_events()
            }
        )
        .await,
        [0; 0]
    );
}

/// A page from the end is in ascending order.
pub async fn newest_page_is_in_ascending_order(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    stores
        .events
        .append((0..10).map(|_| event("t1", "r1", "")).collect())
        .await
        .expect("appended");
    let page = |order, before_seq| EventQuery {
        limit: 3,
        order,
        before_seq,
        ..EventQuery::default()
    };
    assert_eq!(
        seqs(&stores, "t1", page(Order::Newest, None)).await,
        [8, 9, 10]
    );
    assert_eq!(
        seqs(&stores, "t1", page(Order::Newest, Some(8))).await,
        [5, 6, 7]
    );
    assert_eq!(
        seqs(&stores, "t1", page(Order::Oldest, Some(8))).await,
        [1, 2, 3]
    );
}

/// Neither traces nor events of other threads are counted.
pub async fn only_messages_are_counted(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let trace = NewRunEvent {
        category: category::TRACE.to_owned(),
        ..event("t1", "r1", "")
    };
    stores
        .events
        .append(vec![
            event("t1", "r1", ""),
            trace,
            event("t1", "r1", ""),
            event("t2", "r1", ""),
        ])
        .await
        .expect("appended");
    assert_eq!(
        stores
            .events
            .count_messages(&thread("t1"), &Owner::None)
            .await,
        Ok(2)
    );
    assert_eq!(
        stores
            .events
            .count_messages(&thread("t1"), &Owner::User("bob".to_owned()))
            .await,
        Ok(0)
    );
}

/// A missing actor is an error; it does not select the events of all users.
pub async fn events_of_another_user_are_hidden(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let without_owner = NewRunEvent {
        user_id: None,
        ..event("t1", "r1", "")
    };
    stores
        .events
        .append(vec![event("t1", "r1", ""), without_owner])
        .await
        .expect("appended");
    let seen = async |owner: Owner| {
        stores
            .events
            .list(&thread("t1"), &all_events(), &owner)
            .await
            .map(|events| events.len())
    };
    assert_eq!(seen(Owner::User(USER.to_owned())).await, Ok(1));
    assert_eq!(seen(Owner::User("bob".to_owned())).await, Ok(0));
    assert_eq!(seen(Owner::None).await, Ok(2));
    assert_eq!(seen(Owner::Auto).await, Err(StoreError::NoActor(NoActor)));
}

/// The batch has more rows than one statement takes.
pub async fn a_large_batch_is_one_append(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let appended = stores
        .events
        .append(
            (0..1_700)
                .map(|n| event("t1", "r1", &n.to_string()))
                .collect(),
        )
        .await;
    assert_eq!(appended, Ok((1..=1_700).collect()));
    let read = list(&stores, "t1", all_events()).await;
    assert!(
        read.iter()
            .enumerate()
            .all(|(n, (_, event))| event.content == json!({"text": n.to_string()}))
    );
    assert_eq!(read.len(), 1_700);
}
