//! Contract suite of assistant stores.

mod metadata_limit;
mod search;

use std::sync::Arc;

use deerflow_core::actor_context::{NoActor, Owner};
use deerflow_runtime::runs::store::StoreError;
use deerflow_runtime::testkit::{Keep, USER, at, at_once, object};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ann, bob};
use crate::assistants::{
    Assistant, AssistantContent, AssistantPatch, AssistantSearch, AssistantStore, CreatedAssistant,
    NewAssistant, VersionQuery,
};

pub use metadata_limit::change_beyond_metadata_limit_adds_no_version;
pub use search::{
    assistant_search_applies_requested_sort, assistant_search_combines_filters_and_count_agrees,
};

/// Generates one test per requirement of assistant stores.
#[macro_export]
macro_rules! assistant_store_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::assistants]
            created_assistant_is_returned_unchanged
            concurrent_create_has_one_winner
            assistant_of_other_user_is_hidden
            requested_assistants_of_the_owner_are_returned
            assistant_search_combines_filters_and_count_agrees
            assistant_search_applies_requested_sort
            each_change_adds_version_and_any_can_be_activated
            change_beyond_metadata_limit_adds_no_version
            concurrent_changes_add_separate_versions
            deleted_assistant_leaves_no_versions
        }
    };
}

/// Assistant store, opened fresh for each test.
#[derive(Debug, Clone)]
pub struct AssistantStores {
    /// Store under test.
    pub assistants: Arc<dyn AssistantStore>,
    /// Resources that must live as long as the store.
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

fn unlimited_search() -> AssistantSearch {
    AssistantSearch {
        limit: 100,
        ..AssistantSearch::default()
    }
}

/// It is stored as version 1 with all its content.
pub async fn created_assistant_is_returned_unchanged(open: impl AsyncFn() -> AssistantStores) {
    let stores = open().await;
    let content = AssistantContent {
        graph: "lead_agent".to_owned(),
        name: "Ünï 😀".to_owned(),
        description: Some("d".to_owned()),
        config: object(json!({"tags": ["a"], "recursion_limit": 7})),
        context: object(json!({"z": 1, "a": [null, 1.0, "\u{0}"]})),
        metadata: object(json!({"k": {"x": 1}})),
    };
    let created = make(&stores, 1, content.clone()).await;
    assert_eq!(
        (
            created.version,
            &created.content,
            created.created_at,
            created.updated_at
        ),
        (1, &content, at(1), at(1))
    );
    assert_eq!(get(&stores, 1).await, created);
    assert_eq!(stores.assistants.get(id(2), &Owner::None).await, Ok(None));
}

/// The other callers of the same user get the created assistant; another user gets nothing.
pub async fn concurrent_create_has_one_winner(open: impl AsyncFn() -> AssistantStores) {
    let stores = open().await;
    let new = |user: Option<&str>, name: String| NewAssistant {
        id: id(1),
        user_id: user.map(str::to_owned),
        content: content("g", &name, json!({})),
        at: at(0),
    };
    let results = at_once((0..20).map(|n| {
        let (stores, new) = (stores.clone(), new(Some(USER), n.to_string()));
        async move { stores.assistants.create(new).await.expect("written") }
    }))
    .await;
    assert_eq!(
        results
            .iter()
            .filter(|created| matches!(created, CreatedAssistant::New(_)))
            .count(),
        1
    );
    let stored = get(&stores, 1).await;
    assert!(results.into_iter().all(|result| matches!(result, CreatedAssistant::New(assistant) | CreatedAssistant::Existing(assistant) if assistant == stored)));
    for user in [Some("bob"), None] {
        assert_eq!(
            stores
                .assistants
                .create(new(user, "theirs".to_owned()))
                .await,
            Ok(CreatedAssistant::Taken)
        );
    }
    assert_eq!(get(&stores, 1).await, stored);
}

/// Neither reads, searches, counts, changes nor deletes reach it; without an actor the call fails.
pub async fn assistant_of_other_user_is_hidden(open: impl AsyncFn() -> AssistantStores) {
    let stores = open().await;
    let created = make(&stores, 1, content("g", "n", json!({}))).await;
    let store = &stores.assistants;
    assert_eq!(store.get(id(1), &bob()).await, Ok(None));
    assert_eq!(store.search(&unlimited_search(), &bob()).await, Ok(vec![]));
    assert_eq!(store.count(&unlimited_search(), &bob()).await, Ok(0));
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
    assert_eq!(store.get(id(1), &ann()).await, Ok(Some(created)));
    assert_eq!(
        store.get(id(1), &Owner::Auto).await,
        Err(StoreError::NoActor(NoActor))
    );
}

/// Missing ids and assistants of other users are left out.
pub async fn requested_assistants_of_the_owner_are_returned(
    open: impl AsyncFn() -> AssistantStores,
) {
    let stores = open().await;
    let mut made = Vec::new();
    for n in [1, 2, 3] {
        made.push(make(&stores, n, content("g", "n", json!({}))).await);
    }
    let store = &stores.assistants;
    let mut found = store
        .get_many(&[id(3), id(1), id(9)], &ann())
        .await
        .expect("read");
    found.sort_by_key(|assistant| assistant.id);
    assert_eq!(found, [made.remove(0), made.remove(1)]);
    assert_eq!(store.get_many(&[id(1)], &bob()).await, Ok(vec![]));
    assert_eq!(store.get_many(&[], &ann()).await, Ok(vec![]));
    assert_eq!(
        store.get_many(&[id(1)], &Owner::Auto).await,
        Err(StoreError::NoActor(NoActor))
    );
}

/// Metadata merges one level deep, other fields are replaced, and version numbers are not reused.
pub async fn each_change_adds_version_and_any_can_be_activated(
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

/// No change is lost.
pub async fn concurrent_changes_add_separate_versions(open: impl AsyncFn() -> AssistantStores) {
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

/// An assistant created later under the same id starts at version 1.
pub async fn deleted_assistant_leaves_no_versions(open: impl AsyncFn() -> AssistantStores) {
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
