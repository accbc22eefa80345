//! Contract suite of cron stores.

mod firing;
mod search;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use deerflow_core::actor_context::Owner;
use deerflow_runtime::runs::store::{CreatedResource, KeyState, RequestKey};
use deerflow_runtime::testkit::requests::key;
use deerflow_runtime::testkit::{Keep, USER, at, at_once, object, thread};
use serde_json::{Map, json};
use uuid::Uuid;

use crate::accounts::AccountStore;
use crate::crons::{AfterRun, Created, Cron, CronSearch, CronStore, DueFiring};
use crate::threads::{Deleted, NewThread, ThreadStore};

pub use firing::{
    disabled_or_unscheduled_cron_is_not_due, due_firing_is_claimed_by_one_of_many,
    limited_due_firings_prefer_unclaimed_crons, missed_firing_of_disabled_account_is_due_again,
    unfinished_firing_becomes_due_again,
};
pub use search::cron_search_applies_all_filters;

/// Generates one test per requirement of cron stores.
#[macro_export]
macro_rules! cron_store_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::crons]
            created_cron_is_returned_unchanged
            crons_of_other_user_are_hidden
            cron_search_applies_all_filters
            concurrent_cron_update_is_detected
            due_firing_is_claimed_by_one_of_many
            unfinished_firing_becomes_due_again
            limited_due_firings_prefer_unclaimed_crons
            disabled_or_unscheduled_cron_is_not_due
            missed_firing_of_disabled_account_is_due_again
            crons_are_deleted_with_thread
            repeated_cron_request_creates_no_second_cron
        }
    };
}

/// Cron store, opened fresh for each test.
#[derive(Debug, Clone)]
pub struct CronStores {
    /// Store under test.
    pub crons: Arc<dyn CronStore>,
    /// Thread store over the same database, if there is one.
    pub threads: Option<Arc<dyn ThreadStore>>,
    /// Account store over the same database, if there is one.
    pub accounts: Option<Arc<dyn AccountStore>>,
    /// Resources that must live as long as the store.
    pub keep: Arc<dyn Keep>,
}

fn cron(n: u8) -> Cron {
    Cron {
        cron_id: Uuid::from_u128(n.into()),
        user_id: USER.to_owned(),
        assistant_id: "a1".to_owned(),
        thread_id: None,
        schedule: "0 3 * * *".to_owned(),
        timezone: None,
        end_time: None,
        on_run_completed: None,
        enabled: true,
        metadata: Map::new(),
        payload: Map::new(),
        next_run_date: Some(at(100)),
        created_at: at(n.into()),
        updated_at: at(n.into()),
    }
}

async fn create(stores: &CronStores, cron: Cron) {
    assert_eq!(stores.crons.create(cron, None).await, Ok(Created::New));
}

async fn due(stores: &CronStores, now: DateTime<Utc>, lost: DateTime<Utc>) -> Vec<DueFiring> {
    stores.crons.due(now, lost, 10).await.expect("read")
}

async fn found(stores: &CronStores, search: CronSearch) -> Vec<u128> {
    let found = stores
        .crons
        .search(
            USER,
            &CronSearch {
                limit: 10,
                ..search.clone()
            },
        )
        .await
        .expect("read");
    assert_eq!(
        stores
            .crons
            .count(USER, &search)
            .await
            .map(|count| count >= found.len() as u64),
        Ok(true)
    );
    found
        .into_iter()
        .map(|cron| cron.cron_id.as_u128())
        .collect()
}

/// All fields are returned unchanged.
pub async fn created_cron_is_returned_unchanged(open: impl AsyncFn() -> CronStores) {
    let stores = open().await;
    let full = Cron {
        timezone: Some("Europe/Paris".to_owned()),
        end_time: Some(at(200)),
        on_run_completed: Some(AfterRun::Keep),
        enabled: false,
        metadata: object(json!({"m": [1, null]})),
        payload: object(json!({"input": {"text": "ü \u{0} 😀"}})),
        next_run_date: None,
        ..cron(1)
    };
    create(&stores, full.clone()).await;
    create(&stores, cron(2)).await;
    assert_eq!(stores.crons.get(USER, full.cron_id).await, Ok(Some(full)));
    assert_eq!(
        stores.crons.get(USER, cron(2).cron_id).await,
        Ok(Some(cron(2)))
    );
    assert_eq!(stores.crons.get(USER, cron(3).cron_id).await, Ok(None));
}

/// Neither reads, searches, counts, changes nor deletes reach it.
pub async fn crons_of_other_user_are_hidden(open: impl AsyncFn() -> CronStores) {
    let stores = open().await;
    create(&stores, cron(1)).await;
    let (id, all) = (
        cron(1).cron_id,
        CronSearch {
            limit: 9,
            ..CronSearch::default()
        },
    );
    assert_eq!(stores.crons.get("bob", id).await, Ok(None));
    assert_eq!(stores.crons.search("bob", &all).await, Ok(vec![]));
    assert_eq!(stores.crons.count("bob", &all).await, Ok(0));
    assert_eq!(
        stores
            .crons
            .update(
                Cron {
                    user_id: "bob".to_owned(),
                    ..cron(1)
                },
                at(1),
                true
            )
            .await,
        Ok(false)
    );
    assert_eq!(stores.crons.delete("bob", id).await, Ok(false));
    assert_eq!(stores.crons.get(USER, id).await, Ok(Some(cron(1))));
    assert_eq!(stores.crons.delete(USER, id).await, Ok(true));
    assert_eq!(stores.crons.delete(USER, id).await, Ok(false));
}

/// An update without `reschedule` does not change the next firing.
pub async fn concurrent_cron_update_is_detected(open: impl AsyncFn() -> CronStores) {
    let stores = open().await;
    create(&stores, cron(1)).await;
    let renamed = Cron {
        metadata: object(json!({"n": 1})),
        next_run_date: Some(at(999)),
        updated_at: at(50),
        ..cron(1)
    };
    let changed = at_once((0..8).map(|_| {
        let (stores, renamed) = (stores.clone(), renamed.clone());
        async move {
            stores
                .crons
                .update(renamed, at(1), false)
                .await
                .expect("written")
        }
    }))
    .await;
    assert_eq!(changed.iter().filter(|changed| **changed).count(), 1);
    let stored = stores
        .crons
        .get(USER, cron(1).cron_id)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(
        stored,
        Cron {
            next_run_date: Some(at(100)),
            ..renamed.clone()
        }
    );
    let moved = Cron {
        updated_at: at(60),
        enabled: false,
        ..renamed
    };
    assert_eq!(
        stores.crons.update(moved.clone(), at(50), true).await,
        Ok(true)
    );
    assert_eq!(
        stores.crons.get(USER, cron(1).cron_id).await,
        Ok(Some(moved))
    );
}

/// No cron is created on a thread that does not exist or belongs to another user.
pub async fn crons_are_deleted_with_thread(open: impl AsyncFn() -> CronStores) {
    let stores = open().await;
    let Some(threads) = &stores.threads else {
        return;
    };
    let on = |n, name: &str| Cron {
        thread_id: Some(thread(name)),
        ..cron(n)
    };
    assert_eq!(
        stores.crons.create(on(1, "t1"), Some(key("k"))).await,
        Ok(Created::NoThread)
    );
    for (name, user) in [("t1", USER), ("t2", "bob")] {
        let new = NewThread {
            thread_id: thread(name),
            user_id: Some(user.to_owned()),
            assistant: None,
            assistant_id: None,
            metadata: Map::new(),
            ttl: None,
            request: None,
            at: at(0),
        };
        threads.create(new).await.expect("made");
    }
    assert_eq!(
        stores.crons.create(on(1, "t2"), Some(key("k"))).await,
        Ok(Created::NoThread)
    );
    // A rejected request leaves its key unused.
    assert_eq!(
        stores.crons.create(on(1, "t1"), Some(key("k"))).await,
        Ok(Created::New)
    );
    create(&stores, cron(2)).await;
    assert_eq!(
        found(
            &stores,
            CronSearch {
                thread_id: Some(thread("t1")),
                ..CronSearch::default()
            }
        )
        .await,
        [1]
    );
    assert_eq!(
        threads
            .delete(&thread("t1"), &Owner::User(USER.to_owned()))
            .await,
        Ok(Deleted::Removed)
    );
    assert_eq!(found(&stores, CronSearch::default()).await, [2]);
}

/// Of concurrent requests with one key, one creates the cron, and the others get its id.
pub async fn repeated_cron_request_creates_no_second_cron(open: impl AsyncFn() -> CronStores) {
    let stores = open().await;
    let results = at_once((1..9).map(|n| {
        let crons = stores.crons.clone();
        async move {
            crons
                .create(cron(n), Some(key("k")))
                .await
                .expect("written")
        }
    }))
    .await;
    assert_eq!(
        results
            .iter()
            .filter(|result| **result == Created::New)
            .count(),
        1
    );
    let only = found(&stores, CronSearch::default()).await;
    let [only] = only[..] else { panic!("{only:?}") };
    let known = || {
        Created::Known(KeyState::Again(CreatedResource::Cron(Uuid::from_u128(
            only,
        ))))
    };
    assert!(
        results
            .iter()
            .all(|result| *result == Created::New || *result == known()),
        "{results:?}"
    );
    assert_eq!(
        stores
            .crons
            .create(
                cron(20),
                Some(RequestKey {
                    digest: "d2".to_owned(),
                    ..key("k")
                })
            )
            .await,
        Ok(Created::Known(KeyState::Other))
    );
    // The key remains after the cron is deleted.
    assert_eq!(
        stores.crons.delete(USER, Uuid::from_u128(only)).await,
        Ok(true)
    );
    assert_eq!(
        stores.crons.create(cron(20), Some(key("k"))).await,
        Ok(known())
    );
    assert_eq!(
        stores
            .crons
            .create(
                Cron {
                    created_at: at(100),
                    ..cron(20)
                },
                Some(key("k"))
            )
            .await,
        Ok(Created::New)
    );
}
