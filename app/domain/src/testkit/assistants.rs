//! What assistant stores promise.

use std::sync::Arc;

use harness::runtime::actor_context::{NoActor, Owner};
use harness::runtime::runs::store::StoreError;
use harness::testkit::{Keep, USER, at, at_once, object};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ann, bob};
use crate::assistants::{
    Assistant, AssistantContent, AssistantPatch, AssistantSearch, AssistantSort, AssistantStore,
    CreatedAssistant, NewAssistant, VersionQuery,
};

/// One test per promise of assistant stores.
#[macro_export]
macro_rules! assistant_store_suite {
    ($attrs:tt $open:expr) => {
        harness::promises! { $attrs $open, [$crate::testkit::assistants]
            a_made_assistant_is_there_as_it_was_asked_for
            one_of_many_makers_wins
            another_users_assistant_is_as_if_it_did_not_exist
            a_search_combines_its_filters_and_count_agrees_with_it
            a_search_sorts_by_what_was_asked_for
            every_change_is_a_version_and_any_can_be_in_force_again
            changes_at_once_are_versions_of_their_own
            a_deleted_assistant_leaves_no_versions
        }
    };
}

/// The port, opened fresh for one promise.
#[derive(Debug, Clone)]
pub struct AssistantStores {
    /// Assistants.
    pub assistants: Arc<dyn AssistantStore>,
    /// What lives as long as the store.
    pub keep: Arc<dyn Keep>,
}

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

fn content(graph: &str, name: &str, metadata: Value) -> AssistantContent {
    AssistantContent {
        graph: graph.to_owned(),
        name: name.to_owned(),
        metadata: object(metadata),
        ..AssistantContent::default()
    }
}

async fn make(stores: &AssistantStores, n: u128, content: AssistantContent) -> Assistant {
    let new = NewAssistant {
        id: id(n),
        user_id: Some(USER.to_owned()),
        content,
        at: at(i64::try_from(n).unwrap_or_default()),
    };
    match stores.assistants.create(new).await {
        Ok(CreatedAssistant::New(made)) => made,
        other => panic!("not made: {other:?}"),
    }
}

async fn get(stores: &AssistantStores, n: u128) -> Assistant {
    stores
        .assistants
        .get(id(n), &Owner::None)
        .await
        .expect("read")
        .expect("there")
}

async fn found(stores: &AssistantStores, search: AssistantSearch) -> Vec<u128> {
    let found = stores
        .assistants
        .search(
            &AssistantSearch {
                limit: search.limit.max(1),
                ..search
            },
            &ann(),
        )
        .await
        .expect("read");
    found
        .into_iter()
        .map(|assistant| assistant.id.as_u128())
        .collect()
}

fn many() -> AssistantSearch {
    AssistantSearch {
        limit: 100,
        ..AssistantSearch::default()
    }
}

/// Version 1, with all it was given.
pub async fn a_made_assistant_is_there_as_it_was_asked_for(
    open: impl AsyncFn() -> AssistantStores,
) {
    let stores = open().await;
    let asked = AssistantContent {
        graph: "lead_agent".to_owned(),
        name: "Ünï 😀".to_owned(),
        description: Some("d".to_owned()),
        config: object(json!({"tags": ["a"], "recursion_limit": 7})),
        context: object(json!({"z": 1, "a": [null, 1.0, "\u{0}"]})),
        metadata: object(json!({"k": {"x": 1}})),
    };
    let made = make(&stores, 1, asked.clone()).await;
    assert_eq!(
        (
            made.version,
            &made.content,
            made.created_at,
            made.updated_at
        ),
        (1, &asked, at(1), at(1))
    );
    assert_eq!(get(&stores, 1).await, made);
    assert_eq!(stores.assistants.get(id(2), &Owner::None).await, Ok(None));
}

/// And the others of the same user find what it made; another user gets nothing.
pub async fn one_of_many_makers_wins(open: impl AsyncFn() -> AssistantStores) {
    let stores = open().await;
    let new = |user: Option<&str>, name: String| NewAssistant {
        id: id(1),
        user_id: user.map(str::to_owned),
        content: content("g", &name, json!({})),
        at: at(0),
    };
    let made = at_once((0..20).map(|n| {
        let (stores, new) = (stores.clone(), new(Some(USER), n.to_string()));
        async move { stores.assistants.create(new).await.expect("written") }
    }))
    .await;
    assert_eq!(
        made.iter()
            .filter(|created| matches!(created, CreatedAssistant::New(_)))
            .count(),
        1
    );
    let held = get(&stores, 1).await;
    assert!(made.into_iter().all(|made| matches!(made, CreatedAssistant::New(it) | CreatedAssistant::Existing(it) if it == held)));
    for user in [Some("bob"), None] {
        assert_eq!(
            stores
                .assistants
                .create(new(user, "theirs".to_owned()))
                .await,
            Ok(CreatedAssistant::Taken)
        );
    }
    assert_eq!(get(&stores, 1).await, held);
}

/// Not read, found, counted, changed or deleted; without an actor nothing is asked.
pub async fn another_users_assistant_is_as_if_it_did_not_exist(
    open: impl AsyncFn() -> AssistantStores,
) {
    let stores = open().await;
    let made = make(&stores, 1, content("g", "n", json!({}))).await;
    let store = &stores.assistants;
    assert_eq!(store.get(id(1), &bob()).await, Ok(None));
    assert_eq!(store.search(&many(), &bob()).await, Ok(vec![]));
    assert_eq!(store.count(&many(), &bob()).await, Ok(0));
    assert_eq!(
        store
            .patch(id(1), AssistantPatch::default(), &bob(), at(5))
            .await,
        Ok(None)
    );
    assert_eq!(
        store
            .versions(
                id(1),
                &VersionQuery {
                    limit: 9,
                    ..VersionQuery::default()
                },
                &bob()
            )
            .await,
        Ok(None)
    );
    assert_eq!(store.set_latest(id(1), 1, &bob(), at(5)).await, Ok(None));
    assert_eq!(store.delete(id(1), &bob()).await, Ok(false));
    assert_eq!(store.get(id(1), &ann()).await, Ok(Some(made)));
    assert_eq!(
        store.get(id(1), &Owner::Auto).await,
        Err(StoreError::NoActor(NoActor))
    );
}

/// Graph, name and metadata; limit and offset do not change the count.
pub async fn a_search_combines_its_filters_and_count_agrees_with_it(
    open: impl AsyncFn() -> AssistantStores,
) {
    let stores = open().await;
    for (n, graph, name) in [
        (1, "g", "Alpha"),
        (2, "g", "alphabet"),
        (3, "h", "ALPHA"),
        (4, "g", "100%_sure"),
    ] {
        make(
            &stores,
            n,
            content(graph, name, json!({"n": n, "of": {"kind": ["x", n]}})),
        )
        .await;
    }
    let by = |search: AssistantSearch| AssistantSearch {
        ascending: true,
        ..search
    };
    assert_eq!(found(&stores, many()).await, [4, 3, 2, 1]);
    let others = AssistantSearch {
        except: vec![id(3), id(9)],
        ..many()
    };
    assert_eq!(
        (
            found(&stores, others.clone()).await,
            stores.assistants.count(&others, &ann()).await
        ),
        (vec![4, 2, 1], Ok(3))
    );
    let named = AssistantSearch {
        name: Some("alpha".to_owned()),
        ..others
    };
    assert_eq!(
        (
            found(&stores, named.clone()).await,
            stores.assistants.count(&named, &ann()).await
        ),
        (vec![2, 1], Ok(2))
    );
    let named = by(AssistantSearch {
        name: Some("alpha".to_owned()),
        ..many()
    });
    assert_eq!(found(&stores, named.clone()).await, [1, 2, 3]);
    assert_eq!(
        found(
            &stores,
            AssistantSearch {
                graph: Some("g".to_owned()),
                ..named.clone()
            }
        )
        .await,
        [1, 2]
    );
    assert_eq!(
        found(
            &stores,
            AssistantSearch {
                name: Some("%".to_owned()),
                ..many()
            }
        )
        .await,
        [4]
    );
    assert_eq!(
        found(
            &stores,
            by(AssistantSearch {
                metadata: object(json!({"of": {"kind": ["x"]}})),
                ..many()
            })
        )
        .await,
        [1, 2, 3, 4]
    );
    assert_eq!(
        found(
            &stores,
            AssistantSearch {
                metadata: object(json!({"of": {"kind": [3]}})),
                ..many()
            }
        )
        .await,
        [3]
    );
    assert_eq!(
        found(
            &stores,
            AssistantSearch {
                metadata: object(json!({"n": "1"})),
                ..many()
            }
        )
        .await,
        [0; 0]
    );
    let page = AssistantSearch {
        limit: 1,
        offset: 1,
        ..named
    };
    assert_eq!(found(&stores, page.clone()).await, [2]);
    assert_eq!(stores.assistants.count(&page, &ann()).await, Ok(3));
    assert_eq!(
        stores
            .assistants
            .count(
                &AssistantSearch {
                    graph: Some("h".to_owned()),
                    ..many()
                },
                &ann()
            )
            .await,
        Ok(1)
    );
}

/// Text by its bytes; ties by id.
pub async fn a_search_sorts_by_what_was_asked_for(open: impl AsyncFn() -> AssistantStores) {
    let stores = open().await;
    for (n, graph, name) in [
        (1, "b", "zeta"),
        (2, "a", "Zeta"),
        (3, "b", "éta"),
        (4, "a", "alpha"),
    ] {
        make(&stores, n, content(graph, name, json!({}))).await;
    }
    stores
        .assistants
        .patch(id(2), AssistantPatch::default(), &ann(), at(50))
        .await
        .expect("written");
    for (sort_by, ascending) in [
        (AssistantSort::CreatedAt, [1, 2, 3, 4]),
        (AssistantSort::UpdatedAt, [1, 3, 4, 2]),
        (AssistantSort::Name, [2, 4, 1, 3]),
        (AssistantSort::Graph, [2, 4, 1, 3]),
        (AssistantSort::Id, [1, 2, 3, 4]),
    ] {
        let up = AssistantSearch {
            sort_by,
            ascending: true,
            ..many()
        };
        assert_eq!(found(&stores, up.clone()).await, ascending, "{sort_by:?}");
        let mut descending = ascending;
        descending.reverse();
        assert_eq!(
            found(
                &stores,
                AssistantSearch {
                    ascending: false,
                    ..up
                }
            )
            .await,
            descending,
            "{sort_by:?}"
        );
    }
}

/// Metadata merges one level deep, everything else replaces; numbers are not given twice.
pub async fn every_change_is_a_version_and_any_can_be_in_force_again(
    open: impl AsyncFn() -> AssistantStores,
) {
    let stores = open().await;
    let first = make(
        &stores,
        1,
        content("g", "one", json!({"a": {"x": 1}, "b": 1})),
    )
    .await;
    let patch = AssistantPatch {
        name: Some("two".to_owned()),
        config: Some(object(json!({"tags": ["t"]}))),
        metadata: object(json!({"a": {"y": 2}, "c": null})),
        ..AssistantPatch::default()
    };
    let second = stores
        .assistants
        .patch(id(1), patch, &ann(), at(5))
        .await
        .expect("written")
        .expect("there");
    assert_eq!(
        (second.version, second.created_at, second.updated_at),
        (2, first.created_at, at(5))
    );
    assert_eq!(
        (second.content.graph.as_str(), second.content.name.as_str()),
        ("g", "two")
    );
    assert_eq!(
        Value::Object(second.content.metadata.clone()),
        json!({"a": {"y": 2}, "b": 1, "c": null})
    );
    let back = stores
        .assistants
        .set_latest(id(1), 1, &ann(), at(6))
        .await
        .expect("written")
        .expect("there");
    assert_eq!(
        (back.version, &back.content, back.updated_at),
        (1, &first.content, at(6))
    );
    assert_eq!(get(&stores, 1).await, back);
    assert_eq!(
        stores.assistants.set_latest(id(1), 9, &ann(), at(7)).await,
        Ok(None)
    );
    let third = stores
        .assistants
        .patch(id(1), AssistantPatch::default(), &ann(), at(8))
        .await
        .expect("written")
        .expect("there");
    assert_eq!((third.version, &third.content), (3, &first.content));
    let all = VersionQuery {
        limit: 9,
        ..VersionQuery::default()
    };
    let versions = stores
        .assistants
        .versions(id(1), &all, &ann())
        .await
        .expect("read")
        .expect("there");
    assert_eq!(
        versions
            .iter()
            .map(|version| version.version)
            .collect::<Vec<_>>(),
        [3, 2, 1]
    );
    assert_eq!(
        (
            &versions[1].content,
            versions[1].created_at,
            versions[2].created_at
        ),
        (&second.content, at(5), at(1))
    );
    let some = VersionQuery {
        metadata: object(json!({"b": 1})),
        limit: 1,
        offset: 1,
    };
    let some = stores
        .assistants
        .versions(id(1), &some, &ann())
        .await
        .expect("read")
        .expect("there");
    assert_eq!(
        some.iter()
            .map(|version| version.version)
            .collect::<Vec<_>>(),
        [2]
    );
}

/// None is lost.
pub async fn changes_at_once_are_versions_of_their_own(open: impl AsyncFn() -> AssistantStores) {
    let stores = open().await;
    make(&stores, 1, content("g", "n", json!({}))).await;
    at_once((0..12).map(|n| {
        let stores = stores.clone();
        async move {
            let patch = AssistantPatch {
                metadata: object(json!({format!("k{n}"): n})),
                ..AssistantPatch::default()
            };
            stores
                .assistants
                .patch(id(1), patch, &ann(), at(9))
                .await
                .expect("written")
        }
    }))
    .await;
    let now = get(&stores, 1).await;
    assert_eq!((now.version, now.content.metadata.len()), (13, 12));
}

/// An assistant made later under its id begins anew.
pub async fn a_deleted_assistant_leaves_no_versions(open: impl AsyncFn() -> AssistantStores) {
    let stores = open().await;
    make(&stores, 1, content("g", "n", json!({}))).await;
    stores
        .assistants
        .patch(id(1), AssistantPatch::default(), &ann(), at(2))
        .await
        .expect("written");
    assert_eq!(stores.assistants.delete(id(1), &ann()).await, Ok(true));
    assert_eq!(stores.assistants.delete(id(1), &ann()).await, Ok(false));
    assert_eq!(stores.assistants.get(id(1), &Owner::None).await, Ok(None));
    make(&stores, 1, content("g", "again", json!({}))).await;
    let all = VersionQuery {
        limit: 9,
        ..VersionQuery::default()
    };
    assert_eq!(
        stores
            .assistants
            .versions(id(1), &all, &ann())
            .await
            .expect("read")
            .expect("there")
            .len(),
        1
    );
}
