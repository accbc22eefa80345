//! What cron stores promise.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{Known, Made, RequestKey};
use harness::testkit::requests::key;
use harness::testkit::{Keep, USER, at, at_once, object, thread};
use serde_json::{Map, json};
use uuid::Uuid;

use crate::crons::{AfterRun, Created, Cron, CronSearch, CronSort, CronStore, Due};
use crate::threads::{Deleted, NewThread, ThreadStore};

/// One test per promise of cron stores.
#[macro_export]
macro_rules! cron_store_suite {
    ($attrs:tt $open:expr) => {
        harness::promises! { $attrs $open, [$crate::testkit::crons]
            a_cron_is_there_as_it_was_made
            another_users_crons_are_as_if_they_did_not_exist
            crons_are_found_by_what_they_are_about
            a_change_of_somebody_else_in_between_is_seen
            what_is_due_is_given_to_one_of_many
            a_firing_that_was_not_finished_comes_back
            what_is_switched_off_or_has_no_next_time_is_not_due
            crons_go_with_their_thread
            a_request_that_comes_again_makes_no_other_cron
        }
    };
}

/// A cron store, opened fresh for one promise.
#[derive(Debug, Clone)]
pub struct CronStores {
    /// The store.
    pub crons: Arc<dyn CronStore>,
    /// The threads beside it, where it knows any.
    pub threads: Option<Arc<dyn ThreadStore>>,
    /// What lives as long as it.
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

async fn due(stores: &CronStores, now: DateTime<Utc>, lost: DateTime<Utc>) -> Vec<Due> {
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

/// Every field.
pub async fn a_cron_is_there_as_it_was_made(open: impl AsyncFn() -> CronStores) {
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

/// Not read, found, counted, changed or removed.
pub async fn another_users_crons_are_as_if_they_did_not_exist(open: impl AsyncFn() -> CronStores) {
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

/// Filters, order, pages and counts agree.
pub async fn crons_are_found_by_what_they_are_about(open: impl AsyncFn() -> CronStores) {
    let stores = open().await;
    create(
        &stores,
        Cron {
            metadata: object(json!({"m": {"x": 1, "y": 2}})),
            next_run_date: Some(at(300)),
            ..cron(1)
        },
    )
    .await;
    create(
        &stores,
        Cron {
            assistant_id: "a2".to_owned(),
            next_run_date: None,
            ..cron(2)
        },
    )
    .await;
    create(
        &stores,
        Cron {
            enabled: false,
            metadata: object(json!({"m": {"x": 1}, "k": null})),
            ..cron(3)
        },
    )
    .await;
    let all = CronSearch::default;
    let all_of = || CronSearch { limit: 10, ..all() };
    assert_eq!(found(&stores, all()).await, [3, 2, 1]);
    assert_eq!(
        found(
            &stores,
            CronSearch {
                ascending: true,
                offset: 1,
                ..all()
            }
        )
        .await,
        [2, 3]
    );
    assert_eq!(
        found(
            &stores,
            CronSearch {
                sort_by: CronSort::NextRunDate,
                ..all()
            }
        )
        .await,
        [1, 3, 2]
    );
    assert_eq!(
        found(
            &stores,
            CronSearch {
                assistant_id: Some("a2".to_owned()),
                ..all()
            }
        )
        .await,
        [2]
    );
    assert_eq!(
        found(
            &stores,
            CronSearch {
                enabled: Some(true),
                ..all()
            }
        )
        .await,
        [2, 1]
    );
    assert_eq!(
        found(
            &stores,
            CronSearch {
                metadata: object(json!({"m": {"x": 1}})),
                ..all()
            }
        )
        .await,
        [3, 1]
    );
    assert_eq!(
        found(
            &stores,
            CronSearch {
                metadata: object(json!({"k": null})),
                ..all()
            }
        )
        .await,
        [3]
    );
    assert_eq!(
        found(
            &stores,
            CronSearch {
                thread_id: Some(thread("t1")),
                ..all()
            }
        )
        .await,
        [0_u128; 0]
    );
    for sort_by in [
        CronSort::UpdatedAt,
        CronSort::CronId,
        CronSort::AssistantId,
        CronSort::ThreadId,
        CronSort::EndTime,
    ] {
        for ascending in [false, true] {
            let search = CronSearch {
                sort_by,
                ascending,
                limit: 10,
                ..all()
            };
            let everything = stores.crons.search(USER, &all_of()).await.expect("read");
            assert_eq!(
                stores.crons.search(USER, &search).await,
                Ok(search.answer(everything)),
                "{sort_by:?} {ascending}"
            );
        }
    }
    let described = CronSearch {
        metadata: object(json!({"m": {"x": 1}})),
        limit: 1,
        offset: 1,
        ..all()
    };
    assert_eq!(
        stores
            .crons
            .search(USER, &described)
            .await
            .map(|found| found.len()),
        Ok(1)
    );
    assert_eq!(stores.crons.count(USER, &described).await, Ok(2));
    let page = CronSearch { limit: 1, ..all() };
    assert_eq!(stores.crons.count(USER, &page).await, Ok(3));
}

/// And a change that is not about time leaves the next firing alone.
pub async fn a_change_of_somebody_else_in_between_is_seen(open: impl AsyncFn() -> CronStores) {
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
    let kept = stores
        .crons
        .get(USER, cron(1).cron_id)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(
        kept,
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

/// Who takes it moves the cron on, so that nobody else can.
pub async fn what_is_due_is_given_to_one_of_many(open: impl AsyncFn() -> CronStores) {
    let stores = open().await;
    create(&stores, cron(1)).await;
    create(
        &stores,
        Cron {
            next_run_date: Some(at(90)),
            ..cron(2)
        },
    )
    .await;
    assert_eq!(due(&stores, at(89), at(0)).await, []);
    let waiting = due(&stores, at(100), at(0)).await;
    let times: Vec<_> = waiting
        .iter()
        .map(|due| (due.cron.cron_id.as_u128(), due.fires_for, due.taken_at))
        .collect();
    assert_eq!(times, [(2, at(90), None), (1, at(100), None)]);
    let taken = at_once((0..8).map(|_| {
        let (stores, due) = (stores.clone(), waiting[1].clone());
        async move {
            stores
                .crons
                .take(&due, Some(at(200)), at(101))
                .await
                .expect("written")
        }
    }))
    .await;
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 1);
    let kept = stores
        .crons
        .get(USER, cron(1).cron_id)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(
        kept,
        Cron {
            next_run_date: Some(at(200)),
            ..cron(1)
        }
    );
    assert_eq!(due(&stores, at(150), at(0)).await.len(), 1);
}

/// To one of many as well, until it is finished.
pub async fn a_firing_that_was_not_finished_comes_back(open: impl AsyncFn() -> CronStores) {
    let stores = open().await;
    create(&stores, cron(1)).await;
    let first = due(&stores, at(100), at(0)).await.remove(0);
    assert_eq!(stores.crons.take(&first, None, at(101)).await, Ok(true));
    assert_eq!(due(&stores, at(110), at(101)).await, []);
    let lost = due(&stores, at(200), at(102)).await.remove(0);
    assert_eq!((lost.fires_for, lost.taken_at), (at(100), Some(at(101))));
    assert_eq!(
        stores.crons.take(&lost, Some(at(999)), at(200)).await,
        Ok(true)
    );
    assert_eq!(
        stores.crons.take(&lost, Some(at(999)), at(200)).await,
        Ok(false)
    );
    let kept = stores
        .crons
        .get(USER, cron(1).cron_id)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(kept.next_run_date, None);
    assert_eq!(stores.crons.finish(kept.cron_id, at(99)).await, Ok(()));
    assert_eq!(due(&stores, at(300), at(300)).await.len(), 1);
    assert_eq!(stores.crons.finish(kept.cron_id, at(100)).await, Ok(()));
    assert_eq!(due(&stores, at(300), at(300)).await, []);
}

/// Not even to somebody who saw it before.
pub async fn what_is_switched_off_or_has_no_next_time_is_not_due(
    open: impl AsyncFn() -> CronStores,
) {
    let stores = open().await;
    create(
        &stores,
        Cron {
            enabled: false,
            ..cron(1)
        },
    )
    .await;
    create(
        &stores,
        Cron {
            next_run_date: None,
            ..cron(2)
        },
    )
    .await;
    create(&stores, cron(3)).await;
    let waiting = due(&stores, at(500), at(0)).await;
    assert_eq!(
        waiting
            .iter()
            .map(|due| due.cron.cron_id.as_u128())
            .collect::<Vec<_>>(),
        [3]
    );
    assert_eq!(
        stores
            .crons
            .update(
                Cron {
                    enabled: false,
                    updated_at: at(60),
                    ..cron(3)
                },
                at(3),
                false
            )
            .await,
        Ok(true)
    );
    assert_eq!(
        stores.crons.take(&waiting[0], None, at(500)).await,
        Ok(false)
    );
    assert_eq!(stores.crons.delete(USER, cron(3).cron_id).await, Ok(true));
    assert_eq!(
        stores.crons.take(&waiting[0], None, at(500)).await,
        Ok(false)
    );
}

/// And none is made on a thread that is not there, or not the user's.
pub async fn crons_go_with_their_thread(open: impl AsyncFn() -> CronStores) {
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
    // What was refused left its key free.
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
        Ok(Deleted::Done)
    );
    assert_eq!(found(&stores, CronSearch::default()).await, [2]);
}

/// Of many twins at once one makes it, and the others get to know which.
pub async fn a_request_that_comes_again_makes_no_other_cron(open: impl AsyncFn() -> CronStores) {
    let stores = open().await;
    let made = at_once((1..9).map(|n| {
        let crons = stores.crons.clone();
        async move {
            crons
                .create(cron(n), Some(key("k")))
                .await
                .expect("written")
        }
    }))
    .await;
    assert_eq!(made.iter().filter(|made| **made == Created::New).count(), 1);
    let only = found(&stores, CronSearch::default()).await;
    let [only] = only[..] else { panic!("{only:?}") };
    let known = || Created::Known(Known::Again(Made::Cron(Uuid::from_u128(only))));
    assert!(
        made.iter()
            .all(|made| *made == Created::New || *made == known()),
        "{made:?}"
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
        Ok(Created::Known(Known::Other))
    );
    // The key outlives its cron.
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
