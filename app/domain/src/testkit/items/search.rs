//! Contract of item search and of namespace listings.

use deerflow_runtime::testkit::{USER, at, at_once, object};
use serde_json::json;

use super::{ItemStores, keys, new, put, search_in, space};
use crate::items::{Filter, ItemSearch, NamespaceQuery, NewItem};

/// Labels are compared as a whole.
pub async fn search_covers_namespace_and_descendants(open: impl AsyncFn() -> ItemStores) {
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
    assert_eq!(keys(&stores, &search_in("a b")).await, ["k2", "k1", "k0"]);
    assert_eq!(keys(&stores, &search_in("a")).await.len(), 7);
    assert_eq!(keys(&stores, &search_in("")).await.len(), 9);
    assert_eq!(keys(&stores, &search_in("a b c d e")).await, [""; 0]);
}

/// Ties are ordered by namespace and key.
pub async fn pages_list_last_written_first(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    for n in 0..6 {
        put(&stores, new("a", &format!("k{n}"), json!({"n": n}), n / 2)).await;
    }
    put(&stores, new("a", "k0", json!({"n": 0}), 9)).await;
    let filter = Filter::parse(object(json!({"n": {"$gte": 0}}))).expect("known");
    for filter in [Filter::default(), filter] {
        let search = ItemSearch {
            filter,
            ..search_in("a")
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

/// Also finds rare matches.
pub async fn filter_scans_many_pages(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    // Run in portions: the pool has few connections, and waiting too long for one fails.
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
        ..search_in("a")
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

/// An item ranks by the best of its vectors; without a vector of the query's length it is not
/// returned.
pub async fn most_similar_item_comes_first(open: impl AsyncFn() -> ItemStores) {
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
        ..search_in("a")
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
            .search(USER, &search_in("a"))
            .await
            .expect("read")
            .iter()
            .all(|hit| hit.score.is_none())
    );
}

/// Embeddings of replaced and deleted items are not searched.
pub async fn embeddings_are_deleted_with_item(open: impl AsyncFn() -> ItemStores) {
    let stores = open().await;
    let search = ItemSearch {
        nearest: Some(vec![1.0]),
        ..search_in("a")
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

/// Covers wildcards, truncation and pages.
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
