//! What memory stores promise.

use std::sync::Arc;

use super::{Keep, at, at_once, thread};
use crate::memory::{Fact, MemoryDocument, MemoryScope, MemoryStore, Noted};

/// One test per promise of memory stores.
#[macro_export]
macro_rules! memory_store_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::memories]
            a_document_is_there_as_it_was_written
            only_who_knows_the_revision_writes
            scopes_do_not_see_each_other
            agents_are_known_by_their_documents_and_news
            news_are_due_when_their_thread_has_been_quiet
            news_are_taken_by_one_worker_and_come_back_from_one_that_is_silent
            news_that_come_meanwhile_stay_due
            what_was_learned_and_what_failed_is_remembered
            what_is_given_back_is_due_for_others_at_once
            news_in_a_hurry_come_before_all_others
            a_forgotten_thread_has_no_news
        }
    };
}

/// A memory store, opened fresh for one promise.
#[derive(Debug, Clone)]
pub struct MemoryStores {
    /// The store.
    pub memories: Arc<dyn MemoryStore>,
    /// What lives as long as it.
    pub keep: Arc<dyn Keep>,
}

fn ann() -> MemoryScope {
    MemoryScope::of_user("ann")
}

fn document(revision: i64, content: &str) -> MemoryDocument {
    let fact = serde_json::json!({"id": "fact_1", "content": content, "confidence": 0.9, "topics": ["a"], "source": {"type": "manual"}});
    let fact: Fact = serde_json::from_value(fact).expect("a fact");
    MemoryDocument {
        revision,
        facts: vec![fact],
        ..MemoryDocument::default()
    }
}

async fn write(stores: &MemoryStores, scope: &MemoryScope, revision: i64, edited: bool) -> bool {
    stores
        .memories
        .write(scope, &document(revision, "x"), edited, at(1))
        .await
        .expect("written")
}

async fn take(stores: &MemoryStores, now: i64) -> Vec<Noted> {
    stores
        .memories
        .take(at(now), at(now + 10), 5)
        .await
        .expect("taken")
}

async fn note(stores: &MemoryStores, on: &str, due: i64) {
    stores
        .memories
        .note(&ann(), &thread(on), at(due))
        .await
        .expect("noted");
}

/// Fields of others included; the store counts its revisions.
pub async fn a_document_is_there_as_it_was_written(open: impl AsyncFn() -> MemoryStores) {
    let stores = open().await;
    assert_eq!(stores.memories.read(&ann()).await, Ok(None));
    let given = document(0, "lives in 北京\u{0} 😀");
    assert_eq!(
        stores.memories.write(&ann(), &given, true, at(1)).await,
        Ok(true)
    );
    let stored = stores
        .memories
        .read(&ann())
        .await
        .expect("read")
        .expect("there");
    assert_eq!(
        (stored.edits, stored.document),
        (
            1,
            MemoryDocument {
                revision: 1,
                ..given
            }
        )
    );
}

/// Of many at once, one does.
pub async fn only_who_knows_the_revision_writes(open: impl AsyncFn() -> MemoryStores) {
    let stores = open().await;
    for revision in 0..2 {
        let wrote = at_once((0..10).map(|_| {
            let stores = stores.clone();
            async move { write(&stores, &ann(), revision, false).await }
        }))
        .await;
        assert_eq!(
            wrote.iter().filter(|wrote| **wrote).count(),
            1,
            "revision {revision}"
        );
    }
    assert!(!write(&stores, &ann(), 0, true).await && !write(&stores, &ann(), 7, true).await);
    assert_eq!(
        stores
            .memories
            .read(&ann())
            .await
            .expect("read")
            .map(|stored| stored.edits),
        Some(0)
    );
}

/// Neither users nor agents.
pub async fn scopes_do_not_see_each_other(open: impl AsyncFn() -> MemoryStores) {
    let stores = open().await;
    let agent = MemoryScope {
        agent: Some("coder".to_owned()),
        ..ann()
    };
    assert!(write(&stores, &agent, 0, false).await);
    assert_eq!(stores.memories.read(&ann()).await, Ok(None));
    assert!(write(&stores, &MemoryScope::of_user("bob"), 0, false).await);
    assert!(write(&stores, &ann(), 0, false).await);
}

/// Of one user, each once, and not the usual one.
pub async fn agents_are_known_by_their_documents_and_news(open: impl AsyncFn() -> MemoryStores) {
    let stores = open().await;
    let of = |agent: &str| MemoryScope {
        agent: Some(agent.to_owned()),
        ..ann()
    };
    assert!(write(&stores, &ann(), 0, false).await && write(&stores, &of("coder"), 0, false).await);
    assert!(
        write(
            &stores,
            &MemoryScope {
                agent: Some("cook".to_owned()),
                ..MemoryScope::of_user("bob")
            },
            0,
            false
        )
        .await
    );
    for (agent, on) in [("coder", "t1"), ("reader", "t1"), ("reader", "t2")] {
        stores
            .memories
            .note(&of(agent), &thread(on), at(1))
            .await
            .expect("noted");
    }
    assert_eq!(
        stores.memories.agents("ann").await,
        Ok(vec!["coder".to_owned(), "reader".to_owned()])
    );
    assert_eq!(stores.memories.agents("nobody").await, Ok(vec![]));
}

/// A later note postpones an earlier one; the longest due come first.
pub async fn news_are_due_when_their_thread_has_been_quiet(open: impl AsyncFn() -> MemoryStores) {
    let stores = open().await;
    note(&stores, "t1", 5).await;
    note(&stores, "t2", 3).await;
    note(&stores, "t1", 8).await;
    assert_eq!(take(&stores, 2).await, []);
    let threads = |taken: Vec<Noted>| {
        taken
            .into_iter()
            .map(|noted| noted.thread.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(threads(take(&stores, 5).await), ["t2"]);
    note(&stores, "t3", 6).await;
    assert_eq!(threads(take(&stores, 9).await), ["t3", "t1"]);
}

/// However many look at once.
pub async fn news_are_taken_by_one_worker_and_come_back_from_one_that_is_silent(
    open: impl AsyncFn() -> MemoryStores,
) {
    let stores = open().await;
    note(&stores, "t1", 1).await;
    let taken = at_once((0..10).map(|_| {
        let stores = stores.clone();
        async move { take(&stores, 2).await }
    }))
    .await;
    assert_eq!(taken.into_iter().flatten().count(), 1);
    assert_eq!(take(&stores, 11).await.len(), 0);
    assert_eq!(take(&stores, 12).await.len(), 1);
}

/// And are taken when those before are done.
pub async fn news_that_come_meanwhile_stay_due(open: impl AsyncFn() -> MemoryStores) {
    let stores = open().await;
    note(&stores, "t1", 1).await;
    let first = take(&stores, 2).await.remove(0);
    note(&stores, "t1", 4).await;
    assert_eq!(take(&stores, 5).await.len(), 0, "one worker at a time");
    stores
        .memories
        .done(&first, Some("m1"))
        .await
        .expect("written");
    let second = take(&stores, 5).await.remove(0);
    assert_eq!(second.watermark.as_deref(), Some("m1"));
    stores
        .memories
        .done(&second, Some("m2"))
        .await
        .expect("written");
    assert_eq!(take(&stores, 99).await.len(), 0);
}

/// Tries are counted until there is something new.
pub async fn what_was_learned_and_what_failed_is_remembered(open: impl AsyncFn() -> MemoryStores) {
    let stores = open().await;
    note(&stores, "t1", 1).await;
    let first = take(&stores, 2).await.remove(0);
    assert_eq!((first.watermark.clone(), first.tries), (None, 0));
    stores.memories.again(&first, at(6)).await.expect("written");
    assert_eq!(take(&stores, 5).await.len(), 0);
    let second = take(&stores, 6).await.remove(0);
    assert_eq!(second.tries, 1);
    stores.memories.done(&second, None).await.expect("written");
    note(&stores, "t1", 7).await;
    assert_eq!(take(&stores, 7).await.remove(0).tries, 0);
}

/// As if it had not been taken.
pub async fn what_is_given_back_is_due_for_others_at_once(open: impl AsyncFn() -> MemoryStores) {
    let stores = open().await;
    note(&stores, "t1", 1).await;
    let taken = take(&stores, 2).await;
    stores.memories.give_back(&taken[0]).await.expect("written");
    assert_eq!(take(&stores, 2).await, taken);
}

/// However long they were to be quiet; what has none gets none.
pub async fn news_in_a_hurry_come_before_all_others(open: impl AsyncFn() -> MemoryStores) {
    let stores = open().await;
    note(&stores, "t1", 1).await;
    note(&stores, "t2", 50).await;
    for on in ["t2", "t3"] {
        stores
            .memories
            .hurry(&thread(on), at(0))
            .await
            .expect("written");
    }
    let taken = take(&stores, 2).await;
    assert_eq!(
        taken
            .iter()
            .map(|noted| noted.thread.as_str())
            .collect::<Vec<_>>(),
        ["t2", "t1"]
    );
    stores
        .memories
        .done(&taken[0], Some("m1"))
        .await
        .expect("written");
    stores
        .memories
        .hurry(&thread("t2"), at(0))
        .await
        .expect("written");
    assert_eq!(take(&stores, 9).await, []);
}

/// Whoever had noted it.
pub async fn a_forgotten_thread_has_no_news(open: impl AsyncFn() -> MemoryStores) {
    let stores = open().await;
    note(&stores, "t1", 1).await;
    stores
        .memories
        .note(&MemoryScope::of_user("bob"), &thread("t1"), at(1))
        .await
        .expect("noted");
    note(&stores, "t2", 1).await;
    stores
        .memories
        .forget_thread(&thread("t1"))
        .await
        .expect("forgotten");
    stores
        .memories
        .forget_thread(&thread("t1"))
        .await
        .expect("forgotten");
    assert_eq!(take(&stores, 2).await.len(), 1);
}
