//! Quotas of users hold for concurrent writes, and deleted data permits new data.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use chrono::{DateTime, Utc};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::ThreadId;
use deerflow_core::quota::{Quota, QuotaExceeded, UserQuotas};
use deerflow_core::tasks::Tasks;
use deerflow_domain::items::{ItemStore, Namespace, NewItem};
use deerflow_domain::quota_usage::{QuotaUsage, QuotaUsageStore};
use deerflow_domain::threads::{Created, NewThread, ThreadStore};
use deerflow_runtime::runs::store::{AdmitError, RunCreateStore, StoreError};
use deerflow_runtime::testkit::{USER, at_once, new_run};
use deerflow_stores::{
    Database, DatabaseConfig, SqlItemStore, SqlQuotaUsage, SqlRunStore, SqlThreadStore,
};
use serde_json::{Map, json};

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

async fn open(quotas: UserQuotas) -> Database {
    let tasks = Tasks::new();
    let db = Database::open(&DatabaseConfig::Memory, &tasks)
        .await
        .unwrap();
    db.quotas().set(quotas);
    db
}

#[tokio::test]
async fn threads_beyond_quota_are_rejected_on_every_path() {
    let quotas = UserQuotas {
        threads: Some(20),
        ..UserQuotas::default()
    };
    let db = open(quotas).await;
    let threads = SqlThreadStore::new(db.clone());
    let runs = SqlRunStore::new(db.clone());
    let created = at_once((0..30).map(|n| {
        let threads = threads.clone();
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
    let spare = spare.last().unwrap();
    threads.delete(spare, &Owner::None).await.unwrap();
    runs.admit(new_run("r3", "another")).await.unwrap();
    let usage = SqlQuotaUsage::new(db).usage(USER).await.unwrap();
    let expected = QuotaUsage {
        active_runs: 2,
        threads: 20,
        stored_bytes: usage.stored_bytes,
        ..QuotaUsage::default()
    };
    assert_eq!(usage, expected);
    assert!(usage.stored_bytes > 0);
}

#[tokio::test]
async fn only_new_items_count_towards_the_quota() {
    let quotas = UserQuotas {
        items: Some(2),
        ..UserQuotas::default()
    };
    let items = SqlItemStore::new(open(quotas).await);
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

#[tokio::test]
async fn size_beyond_quota_rejects_until_data_is_deleted() {
    let quotas = UserQuotas {
        stored_bytes: Some(10_000),
        ..UserQuotas::default()
    };
    let db = open(quotas).await;
    let items = SqlItemStore::new(db.clone());
    items.put(item("a", 20_000)).await.unwrap();
    // Other limits require a new measurement.
    db.quotas().set(quotas);
    let rejected = items.put(item("b", 1)).await;
    let Err(StoreError::QuotaExceeded(QuotaExceeded { quota, used, limit })) = rejected else {
        panic!("{rejected:?}");
    };
    assert_eq!((quota, limit), (Quota::StoredBytes, 10_000));
    assert!((20_000..21_000).contains(&used), "{used}");
    let runs = SqlRunStore::new(db.clone());
    let run = runs.admit(new_run("r", "t")).await;
    assert!(matches!(run, Err(AdmitError::QuotaExceeded(_))), "{run:?}");

    let namespace = Namespace::new(vec!["n".to_owned()]).unwrap();
    items.delete(USER, &namespace, "a").await.unwrap();
    db.quotas().set(quotas);
    items.put(item("b", 1)).await.unwrap();
    runs.admit(new_run("r", "t")).await.unwrap();
}
