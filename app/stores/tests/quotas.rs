//! Quotas of users hold for concurrent writes, and deleted data permits new data.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "support/postgres.rs"]
mod postgres_schema;

use chrono::{DateTime, Utc};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::ThreadId;
use deerflow_core::quota::{MAX_ASSISTANT_VERSIONS, Quota, QuotaExceeded, UserQuotas};
use deerflow_core::tasks::Tasks;
use deerflow_domain::assistants::{AssistantContent, AssistantPatch, AssistantStore, NewAssistant};
use deerflow_domain::flows::{
    DeletedFlow, Expected, FlowContent, FlowQuota, FlowStore, FlowSummary, FlowWrite, SaveError,
};
use deerflow_domain::items::{ItemStore, Namespace, NewItem};
use deerflow_domain::quota_usage::QuotaUsageStore;
use deerflow_domain::threads::{Created, NewThread, ThreadStore};
use deerflow_runtime::runs::store::{AdmitError, Admitted, NewRun, RunCreateStore, StoreError};
use deerflow_runtime::runs::{RunStatus, UserRunLimits};
use deerflow_runtime::testkit::{USER, at_once, new_run, run};
use deerflow_runtime::user_memory::{MemoryDocument, MemoryScope, UserMemoryStore};
use deerflow_stores::{
    Database, DatabaseConfig, SqlAssistantStore, SqlFlowStore, SqlItemStore, SqlMemoryStore,
    SqlQuotaUsage, SqlRunStore, SqlThreadStore,
};
use serde_json::{Map, json};
use uuid::Uuid;

fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH
}

fn new_thread(id: &str) -> NewThread {
    NewThread {
        thread_id: ThreadId::parse(id).unwrap(),
        user_id: Some(USER.to_owned()),
        assistant: None,
        assistant_id: None,
        metadata: Map::new(),
        ttl: None,
        request: None,
        at: now(),
    }
}

fn item(key: &str, size: usize) -> NewItem {
    NewItem {
        user_id: USER.to_owned(),
        namespace: Namespace::new(vec!["n".to_owned()]).unwrap(),
        key: key.to_owned(),
        value: json!({ "text": "x".repeat(size) })
            .as_object()
            .unwrap()
            .clone(),
        vectors: Vec::new(),
        ttl: None,
        at: now(),
    }
}

fn exceeded(quota: Quota, used: u64, limit: u64) -> QuotaExceeded {
    QuotaExceeded { quota, used, limit }
}

/// Opens a database on two nodes, which are the same with SQLite.
async fn sqlite() -> [Database; 2] {
    let tasks = Tasks::new();
    let db = Database::open(&DatabaseConfig::Memory, &tasks)
        .await
        .unwrap();
    [db.clone(), db]
}

async fn postgres() -> [Database; 2] {
    let first = postgres_schema::open_empty().await;
    [first, postgres_schema::open().await]
}

/// Tests over both databases.
macro_rules! tests {
    ($($name:ident)*) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(super::sqlite().await).await;
            })*
        }
        mod postgres_server {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs DEERFLOW_TEST_POSTGRES_URL; make test-external runs it"]
            async fn $name() {
                super::$name(super::postgres().await).await;
            })*
        }
    };
}

tests! {
    threads_beyond_quota_are_rejected_on_every_path
    only_new_items_count_towards_the_quota
    size_beyond_quota_rejects_until_data_is_deleted
    flows_and_memories_beyond_the_size_are_rejected
    versions_of_an_assistant_are_limited
    two_nodes_hold_the_limits_of_runs_together
}

fn set(nodes: &[Database; 2], quotas: UserQuotas) {
    for node in nodes {
        node.quotas().set(quotas);
    }
}

async fn threads_beyond_quota_are_rejected_on_every_path(nodes: [Database; 2]) {
    let quotas = UserQuotas {
        threads: Some(20),
        ..UserQuotas::default()
    };
    set(&nodes, quotas);
    let [db, _] = nodes.clone();
    let threads = SqlThreadStore::new(db.clone());
    let runs = SqlRunStore::new(db.clone());
    let created = at_once((0..30).map(|n| {
        let threads = SqlThreadStore::new(nodes[n % 2].clone());
        async move { threads.create(new_thread(&format!("t{n}"))).await }
    }));
    let created = created.await;
    let is_new = |result: &&Result<Created, StoreError>| matches!(result, Ok(Created::New(_)));
    assert_eq!(created.iter().filter(is_new).count(), 20);
    let rejected = StoreError::QuotaExceeded(exceeded(Quota::Threads, 20, 20));
    let is_rejected = |result: &&Result<_, _>| matches!(result, Err(error) if *error == rejected);
    assert_eq!(created.iter().filter(is_rejected).count(), 10);

    let on_new_thread = runs.admit(new_run("r1", "another")).await;
    let expected = AdmitError::QuotaExceeded(exceeded(Quota::Threads, 20, 20));
    assert_eq!(on_new_thread, Err(expected));
    let existing = created.iter().find_map(|result| match result {
        Ok(Created::New(thread)) => Some(thread.thread_id.clone()),
        _ => None,
    });
    let existing = existing.unwrap();
    let again = threads.create(new_thread(existing.as_str())).await;
    assert!(matches!(again, Ok(Created::Existing(_))));
    runs.admit(new_run("r2", existing.as_str())).await.unwrap();

    let spare = created.iter().filter_map(|result| match result {
        Ok(Created::New(thread)) if thread.thread_id != existing => Some(&thread.thread_id),
        _ => None,
    });
    let spare = spare.min().unwrap();
    threads.delete(spare, &Owner::None).await.unwrap();
    runs.admit(new_run("r3", "another")).await.unwrap();
    let usage = SqlQuotaUsage::new(db);
    let amount = async |quota| usage.amount(USER, quota).await.unwrap();
    assert_eq!(amount(Quota::ActiveRuns).await, 2);
    assert_eq!(amount(Quota::QueuedRuns).await, 0);
    assert_eq!(amount(Quota::Threads).await, 20);
    assert!(amount(Quota::StoredBytes).await > 0);
}

async fn only_new_items_count_towards_the_quota(nodes: [Database; 2]) {
    let quotas = UserQuotas {
        items: Some(2),
        ..UserQuotas::default()
    };
    set(&nodes, quotas);
    let [db, _] = nodes;
    let items = SqlItemStore::new(db);
    items.put(item("a", 1)).await.unwrap();
    items.put(item("b", 1)).await.unwrap();
    let rejected = items.put(item("c", 1)).await;
    let expected = StoreError::QuotaExceeded(exceeded(Quota::Items, 2, 2));
    assert_eq!(rejected, Err(expected));
    let mut replaced = item("a", 9);
    replaced.at += chrono::TimeDelta::seconds(1);
    items.put(replaced).await.unwrap();
    let namespace = Namespace::new(vec!["n".to_owned()]).unwrap();
    items.delete(USER, &namespace, "b").await.unwrap();
    items.put(item("c", 1)).await.unwrap();
}

async fn size_beyond_quota_rejects_until_data_is_deleted(nodes: [Database; 2]) {
    let quotas = UserQuotas {
        stored_bytes: Some(10_000),
        ..UserQuotas::default()
    };
    set(&nodes, quotas);
    let [db, _] = nodes;
    let items = SqlItemStore::new(db.clone());
    let runs = SqlRunStore::new(db.clone());
    runs.admit(new_run("before", "before")).await.unwrap();
    items.put(item("a", 20_000)).await.unwrap();
    // Other limits require a new measurement.
    db.quotas().set(quotas);
    let rejected = items.put(item("b", 1)).await;
    let Err(StoreError::QuotaExceeded(QuotaExceeded { quota, used, limit })) = rejected else {
        panic!("{rejected:?}");
    };
    assert_eq!((quota, limit), (Quota::StoredBytes, 10_000));
    assert!((20_000..21_000).contains(&used), "{used}");
    let refused = runs.admit(new_run("r", "t")).await;
    assert!(
        matches!(refused, Err(AdmitError::QuotaExceeded(_))),
        "{refused:?}"
    );

    // What exists is returned as before.
    let threads = SqlThreadStore::new(db.clone());
    let known = threads.create(new_thread("before")).await;
    assert!(matches!(known, Ok(Created::Existing(_))), "{known:?}");
    let known = runs.admit(new_run("before", "before")).await;
    assert_eq!(known, Err(AdmitError::RunExists(run("before"))));

    let namespace = Namespace::new(vec!["n".to_owned()]).unwrap();
    items.delete(USER, &namespace, "a").await.unwrap();
    db.quotas().set(quotas);
    items.put(item("b", 1)).await.unwrap();
    runs.admit(new_run("r", "t")).await.unwrap();
}

fn memory(facts: usize) -> MemoryDocument {
    let fact = |n: usize| json!({ "id": format!("fact_{n}"), "content": "x".repeat(100) });
    let facts: Vec<_> = (0..facts).map(fact).collect();
    serde_json::from_value(json!({ "facts": facts })).unwrap()
}

async fn flows_and_memories_beyond_the_size_are_rejected(nodes: [Database; 2]) {
    let quotas = UserQuotas {
        stored_bytes: Some(10_000),
        ..UserQuotas::default()
    };
    let [db, _] = nodes.clone();
    let (flows, memories) = (
        SqlFlowStore::new(db.clone()),
        SqlMemoryStore::new(db.clone()),
    );
    let scope = MemoryScope::of_user(USER);
    let write = |slug: &str| FlowWrite {
        slug: slug.to_owned(),
        expected: Expected::Any,
        content: FlowContent::new("a: 1", Vec::new()),
        summary: FlowSummary::default(),
    };
    let quota = FlowQuota {
        flows: 10,
        versions: 10,
    };
    let save = async |slug| flows.save(USER, vec![write(slug)], quota, now()).await;
    save("a").await.unwrap();
    assert!(
        memories
            .write(&scope, &memory(2), true, now())
            .await
            .unwrap()
    );
    let large = item("a", 20_000);
    SqlItemStore::new(db.clone()).put(large).await.unwrap();
    set(&nodes, quotas);

    let refused = save("b").await;
    let is_exceeded = |error: &StoreError| matches!(error, StoreError::QuotaExceeded(_));
    assert!(
        matches!(&refused, Err(SaveError::Store(error)) if is_exceeded(error)),
        "{refused:?}"
    );
    let update = |facts| MemoryDocument {
        revision: 1,
        ..memory(facts)
    };
    let refused = memories.write(&scope, &update(3), true, now()).await;
    assert!(refused.as_ref().is_err_and(is_exceeded), "{refused:?}");
    let other = MemoryScope::of_user("another");
    assert!(
        memories
            .write(&other, &memory(3), true, now())
            .await
            .unwrap()
    );
    // Removed facts and deleted flows give space back.
    assert!(
        memories
            .write(&scope, &update(1), true, now())
            .await
            .unwrap()
    );
    let deleted = flows.delete(USER, "a", None, now()).await.unwrap();
    assert_eq!(deleted, DeletedFlow::Removed);
}

async fn versions_of_an_assistant_are_limited(nodes: [Database; 2]) {
    let [db, _] = nodes;
    let (assistants, owner) = (SqlAssistantStore::new(db), Owner::User(USER.to_owned()));
    let new = |id| NewAssistant {
        id,
        user_id: Some(USER.to_owned()),
        content: AssistantContent::default(),
        at: now(),
    };
    let [first, second] = [1, 2].map(Uuid::from_u128);
    for id in [first, second] {
        assistants.create(new(id)).await.unwrap();
    }
    let patch = async |id| {
        let patch = AssistantPatch::default();
        assistants.patch(id, patch, &owner, now()).await
    };
    for version in 2..=MAX_ASSISTANT_VERSIONS {
        let patched = patch(first).await.unwrap().unwrap();
        assert_eq!(u64::from(patched.version), version);
    }
    let expected = exceeded(Quota::AssistantVersions, 1_000, MAX_ASSISTANT_VERSIONS);
    let refused = patch(first).await.unwrap_err();
    assert_eq!(refused, StoreError::QuotaExceeded(expected));
    patch(second).await.unwrap().unwrap();
    let active = assistants.set_latest(first, 1, &owner, now()).await;
    assert_eq!(active.unwrap().unwrap().version, 1);
    let refused = patch(first).await.unwrap_err();
    assert_eq!(refused, StoreError::QuotaExceeded(expected));
}

/// Two nodes admit runs of one user at once, of which more are permitted than the number that is
/// checked without a lock.
async fn two_nodes_hold_the_limits_of_runs_together(nodes: [Database; 2]) {
    for (max_active, max_queued) in [(3, 4), (70, 5)] {
        let user = format!("user-{max_active}");
        let count = max_active + max_queued + 20;
        let admitted = at_once((0..count).map(|n| {
            let runs = SqlRunStore::new(nodes[usize::try_from(n % 2).unwrap()].clone());
            let new = NewRun {
                user_id: Some(user.clone()),
                per_user: UserRunLimits {
                    max_active: Some(max_active),
                    max_queued: Some(max_queued),
                },
                ..new_run(&format!("{user}-{n}"), &format!("{user}-{n}"))
            };
            async move { runs.admit(new).await }
        }));
        let admitted = admitted.await;
        let with_status = |status| {
            let has_status = |result: &&Result<Admitted, AdmitError>| match result {
                Ok(admitted) => admitted.run.status == status,
                Err(AdmitError::QuotaExceeded(_)) => false,
                Err(other) => panic!("{other}"),
            };
            admitted.iter().filter(has_status).count() as u64
        };
        assert_eq!(with_status(RunStatus::Starting), max_active);
        assert_eq!(with_status(RunStatus::Pending), max_queued);
    }
}
