//! Contract of thread listings: filters and order.

use deerflow_runtime::runs::ThreadStatus;
use deerflow_runtime::testkit::{at, object, thread};
use serde_json::json;

use super::{ThreadStores, ann, by_metadata, found, make, new_thread};
use crate::threads::{NewThread, ThreadPatch, ThreadSearch, ThreadSort};

/// `true` does not match 1, 1 matches neither `1.0` nor `"1"`, and null does not match an absent
/// key.
pub async fn metadata_match_respects_types(open: impl AsyncFn() -> ThreadStores) {
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

/// Combines ids, status and metadata; limit and offset do not change the count.
pub async fn thread_search_combines_filters_and_count_agrees(open: impl AsyncFn() -> ThreadStores) {
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

/// Ties are ordered by id, descending.
pub async fn pinned_threads_precede_requested_order(open: impl AsyncFn() -> ThreadStores) {
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
