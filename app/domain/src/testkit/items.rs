//! Contract suite of item stores.

mod search;

use std::sync::Arc;

use chrono::TimeDelta;
use deerflow_runtime::testkit::{Keep, USER, at, at_once, object};
use serde_json::{Value, json};

use crate::items::{
    Filter, Item, ItemSearch, ItemStore, Namespace, NamespaceQuery, NewItem, ReadOptions,
};

pub use search::{
    embeddings_are_deleted_with_item, filter_scans_many_pages, most_similar_item_comes_first,
    namespaces_are_listed_once_in_order, pages_list_last_written_first,
    search_covers_namespace_and_descendants,
};

/// Generates one test per requirement of item stores.
#[macro_export]
macro_rules! item_store_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::items]
            written_item_is_returned_unchanged
            second_put_replaces_all_but_creation_time
            concurrent_writers_leave_one_complete_item
            items_of_other_user_are_hidden
            search_covers_namespace_and_descendants
            pages_list_last_written_first
            filter_scans_many_pages
            most_similar_item_comes_first
            embeddings_are_deleted_with_item
            items_expire_and_reads_renew_them
            namespaces_are_listed_once_in_order
        }
    };
}

/// Item store, opened fresh for each test.
#[derive(Debug, Clone)]
pub struct ItemStores {
    /// Store under test.
    pub items: Arc<dyn ItemStore>,
    /// Resources that must live as long as the store.
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

fn read_options(n: i64) -> ReadOptions {
    ReadOptions {
        at: at(n),
        refresh: false,
    }
}

fn search_in(prefix: &str) -> ItemSearch {
    ItemSearch {
        prefix: space(prefix),
        filter: Filter::default(),
        nearest: None,
        limit: 10,
        offset: 0,
        read_options: read_options(100),
    }
}

async fn put(stores: &ItemStores, item: NewItem) {
    stores.items.put(item).await.expect("written");
}

async fn get(stores: &ItemStores, namespace: &str, key: &str) -> Option<Item> {
    stores
        .items
        .get(USER, &space(namespace), key, read_options(100))
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

/// Any JSON value with any characters is returned unchanged.
pub async fn written_item_is_returned_unchanged(open: impl AsyncFn() -> ItemStores) {
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

/// Deleting removes the whole item and is idempotent.
pub async fn second_put_replaces_all_but_creation_time(open: impl AsyncFn() -> ItemStores) {
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

/// The result is one of the values with its own vectors.
pub async fn concurrent_writers_leave_one_complete_item(open: impl AsyncFn() -> ItemStores) {
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
                ..search_in("a")
            },
        )
        .await
        .expect("read");
    assert_eq!(hits.len(), 1);
    assert_eq!(Some(hits[0].item.clone()), get(&stores, "a", "k").await);
}

/// The same namespace and key of two users are two items.
pub async fn items_of_other_user_are_hidden(open: impl AsyncFn() -> ItemStores) {
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
        stores
            .items
            .get("bob", &space("a"), "k", read_options(1))
            .await,
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
                        ..search_in("")
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

/// Expired items are invisible even before a sweep deletes them.
pub async fn items_expire_and_reads_renew_them(open: impl AsyncFn() -> ItemStores) {
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
    let renew = ReadOptions {
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
        read_options: renew,
        ..search_in("a")
    };
    assert_eq!(keys(&stores, &found).await, ["found"]);
    assert!(
        stores
            .items
            .get(USER, &space("a"), "left", read_options(9))
            .await
            .expect("read")
            .is_some()
    );
    for nearest in [None, Some(vec![1.0])] {
        let later = |n| ItemSearch {
            read_options: read_options(n),
            nearest: nearest.clone(),
            ..search_in("a")
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
            .get(USER, &space("a"), "left", read_options(19))
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
