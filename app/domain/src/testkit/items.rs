//! What item stores promise.

use std::sync::Arc;

use chrono::TimeDelta;
use harness::testkit::{Keep, USER, at, at_once, object};
use serde_json::{Value, json};

use crate::items::{
    Filter, Item, ItemSearch, ItemStore, Namespace, NamespaceQuery, NewItem, Reading,
};

/// One test per promise of item stores.
#[macro_export]
macro_rules! item_store_suite {
    ($attrs:tt $open:expr) => {
        harness::promises! { $attrs $open, [$crate::testkit::items]
            an_item_is_there_as_it_was_written
            writing_again_replaces_all_but_the_time_of_making
            writers_at_once_leave_one_whole_item
            another_users_items_are_as_if_they_did_not_exist
            search_covers_a_namespace_and_what_is_below
            the_last_written_come_first_in_pages
            a_filter_looks_through_many_pages
            the_nearest_meaning_comes_first
            meaning_goes_with_its_item
            items_end_and_reading_renews_them
            namespaces_are_listed_once_in_order
        }
    };
}

/// An item store, opened fresh for one promise.
#[derive(Debug, Clone)]
pub struct ItemStores {
    /// The store.
    pub items: Arc<dyn ItemStore>,
    /// What lives as long as it.
    pub keep: Arc<dyn Keep>,
}

fn space(text: &str) -> Namespace {
    Namespace::new(text.split_whitespace().map(str::to_owned).collect()).expect("labels")
}

fn new(namespace: &str, key: &str, value: Value, n: i64) -> NewItem {
    NewItem {
        user_id: USER.to_owned(),
        namespace: space(namespace),
        key: key.to_owned(),
        value: object(value),
        vectors: vec![],
        ttl: None,
        at: at(n),
    }
}

fn reading(n: i64) -> Reading {
    Reading {
        at: at(n),
        refresh: false,
    }
}

fn within(prefix: &str) -> ItemSearch {
    ItemSearch {
        prefix: space(prefix),
        filter: Filter::default(),
        nearest: None,
        limit: 10,
        offset: 0,
        reading: reading(100),
    }
}

async fn put(stores: &ItemStores, item: NewItem) {
    stores.items.put(item).await.expect("written");
}

async fn get(stores: &ItemStores, namespace: &str, key: &str) -> Option<Item> {
    stores
        .items
        .get(USER, &space(namespace), key, reading(100))
        .await
        .expect("read")
}

async fn keys(stores: &ItemStores, search: &ItemSearch) -> Vec<String> {
    stores
        .items
        .search(USER, search)
        .await
        .expect("read")
        .into_iter()
        .map(|hit| hit.item.key)
        .collect()
}

/// Any JSON, any characters.
pub async fn an_item_is_there_as_it_was_written(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    let value = json!({"z": null, "l": [1, {"ü": "😀 \u{0}"}], "f": 1.5, "b": true, "n": u64::MAX});
    put(&stores, new("a ü", "k 'q' %", value.clone(), 1)).await;
    let found = get(&stores, "a ü", "k 'q' %").await.expect("there");
    assert_eq!(
        (&found.namespace, found.key.as_str()),
        (&space("a ü"), "k 'q' %")
    );
    assert_eq!(Value::Object(found.value).to_string(), value.to_string());
    assert_eq!((found.created_at, found.updated_at), (at(1), at(1)));
    for (namespace, key) in [("a", "k 'q' %"), ("a ü", "k"), ("a ü x", "k 'q' %")] {
        assert_eq!(get(&stores, namespace, key).await, None);
    }
}

/// Deleting is whole as well, and may be done twice.
pub async fn writing_again_replaces_all_but_the_time_of_making(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    put(&stores, new("a", "k", json!({"x": 1, "y": 2}), 1)).await;
    put(&stores, new("a", "k", json!({"x": 3}), 5)).await;
    let found = get(&stores, "a", "k").await.expect("there");
    assert_eq!(
        (
            Value::Object(found.value),
            found.created_at,
            found.updated_at
        ),
        (json!({"x": 3}), at(1), at(5))
    );
    for _ in 0..2 {
        assert_eq!(stores.items.delete(USER, &space("a"), "k").await, Ok(()));
        assert_eq!(get(&stores, "a", "k").await, None);
    }
    put(&stores, new("a", "k", json!({}), 9)).await;
    assert_eq!(
        get(&stores, "a", "k").await.map(|item| item.created_at),
        Some(at(9))
    );
}

/// One of the values, with its vectors and no others.
pub async fn writers_at_once_leave_one_whole_item(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    at_once((0..20).map(|n| {
        let stores = stores.clone();
        async move {
            put(
                &stores,
                NewItem {
                    vectors: vec![vec![1.0, 0.0]; 2],
                    ..new("a", "k", json!({"n": n}), 1)
                },
            )
            .await
        }
    }))
    .await;
    let hits = stores
        .items
        .search(
            USER,
            &ItemSearch {
                nearest: Some(vec![1.0, 0.0]),
                ..within("a")
            },
        )
        .await
        .expect("read");
    assert_eq!(hits.len(), 1);
    assert_eq!(Some(hits[0].item.clone()), get(&stores, "a", "k").await);
}

/// The same place of two users holds two items.
pub async fn another_users_items_are_as_if_they_did_not_exist(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    put(
        &stores,
        NewItem {
            vectors: vec![vec![1.0]],
            ..new("a", "k", json!({"of": "ann"}), 1)
        },
    )
    .await;
    assert_eq!(
        stores.items.get("bob", &space("a"), "k", reading(1)).await,
        Ok(None)
    );
    for nearest in [None, Some(vec![1.0])] {
        assert_eq!(
            stores
                .items
                .search(
                    "bob",
                    &ItemSearch {
                        nearest,
                        ..within("")
                    }
                )
                .await,
            Ok(vec![])
        );
    }
    let all = NamespaceQuery {
        limit: 9,
        ..NamespaceQuery::default()
    };
    assert_eq!(
        stores.items.namespaces("bob", &all, at(1)).await,
        Ok(vec![])
    );
    assert_eq!(stores.items.delete("bob", &space("a"), "k").await, Ok(()));
    put(
        &stores,
        NewItem {
            user_id: "bob".to_owned(),
            ..new("a", "k", json!({"of": "bob"}), 2)
        },
    )
    .await;
    assert_eq!(
        get(&stores, "a", "k")
            .await
            .map(|item| Value::Object(item.value)),
        Some(json!({"of": "ann"}))
    );
}

/// Labels are compared whole.
pub async fn search_covers_a_namespace_and_what_is_below(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    for (n, namespace) in [
        "a b", "a b c", "a b c d", "a bc", "a b! c", "a", "A b", "b a b", "a b~",
    ]
    .into_iter()
    .enumerate()
    {
        put(
            &stores,
            new(
                namespace,
                &format!("k{n}"),
                json!({}),
                i64::try_from(n).expect("small"),
            ),
        )
        .await;
    }
    assert_eq!(keys(&stores, &within("a b")).await, ["k2", "k1", "k0"]);
    assert_eq!(keys(&stores, &within("a")).await.len(), 7);
    assert_eq!(keys(&stores, &within("")).await.len(), 9);
    assert_eq!(keys(&stores, &within("a b c d e")).await, [""; 0]);
}

/// Ties go to the smaller place.
pub async fn the_last_written_come_first_in_pages(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    for n in 0..6 {
        put(&stores, new("a", &format!("k{n}"), json!({"n": n}), n / 2)).await;
    }
    put(&stores, new("a", "k0", json!({"n": 0}), 9)).await;
    let filter = Filter::parse(object(json!({"n": {"$gte": 0}}))).expect("known");
    for filter in [Filter::default(), filter] {
        let search = ItemSearch {
            filter,
            ..within("a")
        };
        assert_eq!(
            keys(&stores, &search).await,
            ["k0", "k4", "k5", "k2", "k3", "k1"]
        );
        assert_eq!(
            keys(
                &stores,
                &ItemSearch {
                    limit: 2,
                    offset: 1,
                    ..search.clone()
                }
            )
            .await,
            ["k4", "k5"]
        );
        assert_eq!(
            keys(
                &stores,
                &ItemSearch {
                    offset: 6,
                    ..search
                }
            )
            .await,
            [""; 0]
        );
    }
}

/// However rare what fits is.
pub async fn a_filter_looks_through_many_pages(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    // In portions: a pool has few connections, and whoever waits too long for one is refused.
    for portion in 0..12 {
        at_once((portion * 50..(portion + 1) * 50).map(|n| {
            let stores = stores.clone();
            async move {
                let vectors = vec![vec![n as f32, 1.0], vec![0.0, 1.0]];
                put(
                    &stores,
                    NewItem {
                        vectors,
                        ..new(
                            "a b",
                            &format!("k{n:03}"),
                            json!({"n": n, "even": n % 2 == 0}),
                            n,
                        )
                    },
                )
                .await;
            }
        }))
        .await;
    }
    let filter = Filter::parse(object(json!({"even": true, "n": {"$lt": 5}}))).expect("known");
    let search = ItemSearch {
        filter,
        ..within("a")
    };
    assert_eq!(keys(&stores, &search).await, ["k004", "k002", "k000"]);
    let nearest = ItemSearch {
        nearest: Some(vec![1.0, 0.0]),
        ..search.clone()
    };
    assert_eq!(
        keys(
            &stores,
            &ItemSearch {
                limit: 2,
                ..nearest.clone()
            }
        )
        .await,
        ["k004", "k002"]
    );
    let all = ItemSearch {
        filter: Filter::default(),
        limit: 3,
        offset: 595,
        ..nearest
    };
    assert_eq!(keys(&stores, &all).await, ["k004", "k003", "k002"]);
}

/// An item counts by the nearest of its vectors, and not at all without one of the wanted length.
pub async fn the_nearest_meaning_comes_first(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    for (key, vectors) in [
        ("same", vec![vec![2.0, 0.0]]),
        (
            "parts",
            vec![vec![0.0, 1.0], vec![3.0, 3.0], vec![-1.0, 0.0]],
        ),
        ("across", vec![vec![0.0, 5.0]]),
        ("against", vec![vec![-1.0, 0.0]]),
        ("other length", vec![vec![1.0, 0.0, 0.0]]),
        ("no direction", vec![vec![0.0, 0.0]]),
        ("none", vec![]),
    ] {
        put(
            &stores,
            NewItem {
                vectors,
                ..new("a", key, json!({"even": true}), 1)
            },
        )
        .await;
    }
    let search = ItemSearch {
        nearest: Some(vec![7.0, 0.0]),
        ..within("a")
    };
    let hits = stores.items.search(USER, &search).await.expect("read");
    let scores: Vec<(&str, f64)> = hits
        .iter()
        .map(|hit| (hit.item.key.as_str(), hit.score.expect("a score")))
        .collect();
    let expected = [
        ("same", 1.0),
        ("parts", 0.5_f64.sqrt()),
        ("across", 0.0),
        ("against", -1.0),
    ];
    assert_eq!(scores.len(), expected.len(), "{scores:?}");
    for ((key, score), (expected_key, expected)) in scores.into_iter().zip(expected) {
        assert!(
            key == expected_key && (score - expected).abs() < 1e-6,
            "{key} {score}"
        );
    }
    assert_eq!(
        keys(
            &stores,
            &ItemSearch {
                limit: 1,
                offset: 1,
                ..search
            }
        )
        .await,
        ["parts"]
    );
    assert!(
        stores
            .items
            .search(USER, &within("a"))
            .await
            .expect("read")
            .iter()
            .all(|hit| hit.score.is_none())
    );
}

/// What is replaced or removed is not found by what it meant.
pub async fn meaning_goes_with_its_item(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    let search = ItemSearch {
        nearest: Some(vec![1.0]),
        ..within("a")
    };
    put(
        &stores,
        NewItem {
            vectors: vec![vec![1.0]; 3],
            ..new("a", "k", json!({}), 1)
        },
    )
    .await;
    put(
        &stores,
        NewItem {
            vectors: vec![vec![-1.0]],
            ..new("a", "k", json!({}), 2)
        },
    )
    .await;
    let scores: Vec<_> = stores
        .items
        .search(USER, &search)
        .await
        .expect("read")
        .into_iter()
        .map(|hit| hit.score)
        .collect();
    assert_eq!(scores, [Some(-1.0)]);
    put(&stores, new("a", "k", json!({}), 3)).await;
    assert_eq!(keys(&stores, &search).await, [""; 0]);
    put(
        &stores,
        NewItem {
            vectors: vec![vec![1.0]],
            ..new("a", "k", json!({}), 4)
        },
    )
    .await;
    stores
        .items
        .delete(USER, &space("a"), "k")
        .await
        .expect("removed");
    put(&stores, new("a", "k", json!({}), 5)).await;
    assert_eq!(keys(&stores, &search).await, [""; 0]);
}

/// What has ended is gone at once, whether it was swept away or not.
pub async fn items_end_and_reading_renews_them(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    let ttl = Some(at(10) - at(0));
    for key in ["read", "found", "left"] {
        put(
            &stores,
            NewItem {
                ttl,
                vectors: vec![vec![1.0]],
                ..new("a", key, json!({"key": key}), 0)
            },
        )
        .await;
    }
    put(&stores, new("b", "ever", json!({}), 0)).await;
    let renew = Reading {
        at: at(9),
        refresh: true,
    };
    assert!(
        stores
            .items
            .get(USER, &space("a"), "read", renew)
            .await
            .expect("read")
            .is_some()
    );
    let filter = Filter::parse(object(json!({"key": "found"}))).expect("known");
    let found = ItemSearch {
        filter,
        reading: renew,
        ..within("a")
    };
    assert_eq!(keys(&stores, &found).await, ["found"]);
    assert!(
        stores
            .items
            .get(USER, &space("a"), "left", reading(9))
            .await
            .expect("read")
            .is_some()
    );
    for nearest in [None, Some(vec![1.0])] {
        let later = |n| ItemSearch {
            reading: reading(n),
            nearest: nearest.clone(),
            ..within("a")
        };
        assert_eq!(keys(&stores, &later(10)).await, ["found", "read"]);
        assert_eq!(keys(&stores, &later(19)).await, [""; 0]);
    }
    assert_eq!(
        stores
            .items
            .get(USER, &space("a"), "left", renew)
            .await
            .map(|item| item.is_some()),
        Ok(true)
    );
    assert_eq!(
        stores
            .items
            .get(USER, &space("a"), "left", reading(19))
            .await,
        Ok(None)
    );
    let all = NamespaceQuery {
        limit: 9,
        ..NamespaceQuery::default()
    };
    assert_eq!(
        stores.items.namespaces(USER, &all, at(19)).await,
        Ok(vec![space("b")])
    );
    put(
        &stores,
        NewItem {
            ttl: Some(TimeDelta::days(1)),
            ..new("a", "left", json!({}), 20)
        },
    )
    .await;
    assert_eq!(
        get(&stores, "a", "left").await.map(|item| item.created_at),
        Some(at(20))
    );
    assert_eq!(stores.items.sweep(at(20)).await, Ok(2));
    assert_eq!(stores.items.sweep(at(20)).await, Ok(0));
}

/// With wildcards, cut to a depth, in pages.
pub async fn namespaces_are_listed_once_in_order(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    for (n, namespace) in ["a b c", "a b", "a b c", "a x c", "b b c", "a b d"]
        .into_iter()
        .enumerate()
    {
        put(&stores, new(namespace, &format!("k{n}"), json!({}), 1)).await;
    }
    let labels = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let list = async |query: NamespaceQuery| {
        let query = NamespaceQuery {
            limit: if query.limit == 0 { 10 } else { query.limit },
            ..query
        };
        let found = stores
            .items
            .namespaces(USER, &query, at(9))
            .await
            .expect("read");
        found
            .iter()
            .map(|namespace| namespace.labels().join(" "))
            .collect::<Vec<_>>()
    };
    let all = NamespaceQuery::default;
    assert_eq!(
        list(all()).await,
        ["a b", "a b c", "a b d", "a x c", "b b c"]
    );
    assert_eq!(
        list(NamespaceQuery {
            prefix: labels("a b"),
            ..all()
        })
        .await,
        ["a b", "a b c", "a b d"]
    );
    assert_eq!(
        list(NamespaceQuery {
            prefix: labels("a *"),
            suffix: labels("c"),
            ..all()
        })
        .await,
        ["a b c", "a x c"]
    );
    assert_eq!(
        list(NamespaceQuery {
            max_depth: Some(1),
            ..all()
        })
        .await,
        ["a", "b"]
    );
    assert_eq!(
        list(NamespaceQuery {
            limit: 2,
            offset: 1,
            ..all()
        })
        .await,
        ["a b c", "a b d"]
    );
    assert_eq!(
        list(NamespaceQuery {
            prefix: labels("c"),
            ..all()
        })
        .await,
        [""; 0]
    );
}
