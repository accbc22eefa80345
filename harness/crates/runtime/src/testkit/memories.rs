//! Contract of user memory stores.

use std::sync::Arc;

use super::{Keep, at, at_once, thread};
use crate::user_memory::{Fact, MemoryDocument, MemoryScope, PendingUpdate, UserMemoryStore};

/// Generates one test per guarantee of user memory stores.
#[macro_export]
macro_rules! memory_store_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::memories]
            document_is_read_back_unchanged
            write_requires_current_revision
            scopes_are_isolated
            agents_are_listed_by_documents_and_pending_updates
            updates_are_due_after_thread_is_quiet
            updates_are_leased_to_one_worker_until_expiry
            updates_added_while_leased_stay_pending
            completed_and_failed_updates_are_recorded
            released_updates_are_due_immediately
            urgent_updates_come_first
            removed_thread_has_no_pending_updates
        }
    };
}

/// A user memory store, opened fresh for one test.
#[derive(Debug, Clone)]
pub struct UserMemoryStores {
    /// Store under test.
    pub memories: Arc<dyn UserMemoryStore>,
    /// Resources that must live as long as the store.
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

async fn write(
    stores: &UserMemoryStores,
    scope: &MemoryScope,
    revision: i64,
    edited: bool,
) -> bool {
    stores
        .memories
        .write(scope, &document(revision, "x"), edited, at(1))
        .await
        .expect("written")
}

async fn take(stores: &UserMemoryStores, now: i64) -> Vec<PendingUpdate> {
    stores
        .memories
        .take(at(now), at(now + 10), 5)
        .await
        .expect("claimed")
}

async fn note(stores: &UserMemoryStores, on: &str, due: i64) {
    stores
        .memories
        .note(&ann(), &thread(on), at(due))
        .await
        .expect("noted");
}

/// Unknown fields are retained; the store counts revisions.
pub async fn document_is_read_back_unchanged(open: impl AsyncFn() -> UserMemoryStores) {
    let stores = open().await;
    assert_eq!(stores.memories.read(&ann()).await, Ok(None));
    let leased_now = document(0, "lives in 北京\u{0} 😀");
    assert_eq!(
        stores
            .memories
            .write(&ann(), &leased_now, true, at(1))
            .await,
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
                ..leased_now
            }
        )
    );
}

/// Of concurrent writes, exactly one succeeds.
pub async fn write_requires_current_revision(open: impl AsyncFn() -> UserMemoryStores) {
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

/// Neither users nor agents see each other's documents.
pub async fn scopes_are_isolated(open: impl AsyncFn() -> UserMemoryStores) {
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

/// The list contains each agent of one user once, without the default agent.
pub async fn agents_are_listed_by_documents_and_pending_updates(
    open: impl AsyncFn() -> UserMemoryStores,
) {
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

/// A new update restarts the quiet time of its thread; updates that have been pending longest are
/// returned first.
pub async fn updates_are_due_after_thread_is_quiet(open: impl AsyncFn() -> UserMemoryStores) {
    let stores = open().await;
    note(&stores, "t1", 5).await;
    note(&stores, "t2", 3).await;
    note(&stores, "t1", 8).await;
    assert_eq!(take(&stores, 2).await, []);
    let threads = |leased: Vec<PendingUpdate>| {
        leased
            .into_iter()
            .map(|noted| noted.thread.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(threads(take(&stores, 5).await), ["t2"]);
    note(&stores, "t3", 6).await;
    assert_eq!(threads(take(&stores, 9).await), ["t3", "t1"]);
}

/// Of several concurrent workers, exactly one leases the update.
pub async fn updates_are_leased_to_one_worker_until_expiry(
    open: impl AsyncFn() -> UserMemoryStores,
) {
    let stores = open().await;
    note(&stores, "t1", 1).await;
    let leased = at_once((0..10).map(|_| {
        let stores = stores.clone();
        async move { take(&stores, 2).await }
    }))
    .await;
    assert_eq!(leased.into_iter().flatten().count(), 1);
    assert_eq!(take(&stores, 11).await.len(), 0);
    assert_eq!(take(&stores, 12).await.len(), 1);
}

/// An update added while earlier ones are leased can be leased after their completion.
pub async fn updates_added_while_leased_stay_pending(open: impl AsyncFn() -> UserMemoryStores) {
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

/// Attempts are counted until a new update arrives.
pub async fn completed_and_failed_updates_are_recorded(open: impl AsyncFn() -> UserMemoryStores) {
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

/// Released updates can be leased again as if they had not been leased.
pub async fn released_updates_are_due_immediately(open: impl AsyncFn() -> UserMemoryStores) {
    let stores = open().await;
    note(&stores, "t1", 1).await;
    let leased = take(&stores, 2).await;
    stores
        .memories
        .give_back(&leased[0])
        .await
        .expect("written");
    assert_eq!(take(&stores, 2).await, leased);
}

/// Urgent updates can be leased before the quiet time is over. A thread without updates does not
/// get one.
pub async fn urgent_updates_come_first(open: impl AsyncFn() -> UserMemoryStores) {
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
    let leased = take(&stores, 2).await;
    assert_eq!(
        leased
            .iter()
            .map(|noted| noted.thread.as_str())
            .collect::<Vec<_>>(),
        ["t2", "t1"]
    );
    stores
        .memories
        .done(&leased[0], Some("m1"))
        .await
        .expect("written");
    stores
        .memories
        .hurry(&thread("t2"), at(0))
        .await
        .expect("written");
    assert_eq!(take(&stores, 9).await, []);
}

/// Updates of any origin are removed with their thread.
pub async fn removed_thread_has_no_pending_updates(open: impl AsyncFn() -> UserMemoryStores) {
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
