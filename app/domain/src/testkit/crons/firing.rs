//! Contract of due firings.

use deerflow_runtime::testkit::{USER, at, at_once};

use super::{CronStores, create, cron, due};
use crate::crons::Cron;
use crate::testkit::accounts::set_disabled;

/// A claim also advances the cron, so no other caller can claim the firing.
pub async fn due_firing_is_claimed_by_one_of_many(open: impl AsyncFn() -> CronStores) {
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
        .map(|due| (due.cron.cron_id.as_u128(), due.fires_for, due.claimed_at))
        .collect();
    assert_eq!(times, [(2, at(90), None), (1, at(100), None)]);
    let claimed = at_once((0..8).map(|_| {
        let (stores, due) = (stores.clone(), waiting[1].clone());
        async move {
            stores
                .crons
                .claim(&due, Some(at(200)), at(101))
                .await
                .expect("written")
        }
    }))
    .await;
    assert_eq!(claimed.iter().filter(|claimed| **claimed).count(), 1);
    let stored = stores
        .crons
        .get(USER, cron(1).cron_id)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(
        stored,
        Cron {
            next_run_date: Some(at(200)),
            ..cron(1)
        }
    );
    assert_eq!(due(&stores, at(150), at(0)).await.len(), 1);
}

/// An unfinished claim is also taken over by only one of many callers.
pub async fn unfinished_firing_becomes_due_again(open: impl AsyncFn() -> CronStores) {
    let stores = open().await;
    create(&stores, cron(1)).await;
    let first = due(&stores, at(100), at(0)).await.remove(0);
    assert_eq!(stores.crons.claim(&first, None, at(101)).await, Ok(true));
    assert_eq!(due(&stores, at(110), at(101)).await, []);
    let lost = due(&stores, at(200), at(102)).await.remove(0);
    assert_eq!((lost.fires_for, lost.claimed_at), (at(100), Some(at(101))));
    assert_eq!(
        stores.crons.claim(&lost, Some(at(999)), at(200)).await,
        Ok(true)
    );
    assert_eq!(
        stores.crons.claim(&lost, Some(at(999)), at(200)).await,
        Ok(false)
    );
    let stored = stores
        .crons
        .get(USER, cron(1).cron_id)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(stored.next_run_date, None);
    assert_eq!(stores.crons.finish(stored.cron_id, at(99)).await, Ok(()));
    assert_eq!(due(&stores, at(300), at(300)).await.len(), 1);
    assert_eq!(stores.crons.finish(stored.cron_id, at(100)).await, Ok(()));
    assert_eq!(due(&stores, at(300), at(300)).await, []);
}

/// If more firings are due than requested, those of crons without an unfinished claim are returned.
pub async fn limited_due_firings_prefer_unclaimed_crons(open: impl AsyncFn() -> CronStores) {
    let stores = open().await;
    create(&stores, cron(1)).await;
    let lost = due(&stores, at(100), at(0)).await.remove(0);
    assert_eq!(stores.crons.claim(&lost, None, at(101)).await, Ok(true));
    for (n, next) in [(2, 160), (3, 150)] {
        let next_run_date = Some(at(next));
        create(
            &stores,
            Cron {
                next_run_date,
                ..cron(n)
            },
        )
        .await;
    }
    for (limit, expected) in [(1, &[3][..]), (2, &[3, 2]), (3, &[1, 3, 2])] {
        let found = stores.crons.due(at(200), at(102), limit).await;
        let ids: Vec<_> = found
            .expect("read")
            .iter()
            .map(|due| due.cron.cron_id.as_u128())
            .collect();
        assert_eq!(ids, expected, "limit {limit}");
    }
}

/// A caller that read the firing earlier cannot claim it either.
pub async fn disabled_or_unscheduled_cron_is_not_due(open: impl AsyncFn() -> CronStores) {
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
        stores.crons.claim(&waiting[0], None, at(500)).await,
        Ok(false)
    );
    assert_eq!(stores.crons.delete(USER, cron(3).cron_id).await, Ok(true));
    assert_eq!(
        stores.crons.claim(&waiting[0], None, at(500)).await,
        Ok(false)
    );
}

/// A cron of a disabled account is neither due nor claimed. Its missed time is due again once the
/// account is enabled.
pub async fn missed_firing_of_disabled_account_is_due_again(open: impl AsyncFn() -> CronStores) {
    let stores = open().await;
    let Some(accounts) = &stores.accounts else {
        return;
    };
    let other = Cron {
        user_id: "program".to_owned(),
        ..cron(2)
    };
    create(&stores, cron(1)).await;
    create(&stores, other.clone()).await;
    let waiting = due(&stores, at(100), at(0)).await;
    assert_eq!(waiting.len(), 2);
    set_disabled(&**accounts, USER, true).await;
    let found = due(&stores, at(500), at(0)).await;
    let ids: Vec<_> = found.iter().map(|due| due.cron.cron_id).collect();
    assert_eq!(ids, [other.cron_id]);
    for firing in &waiting {
        let claimed = stores.crons.claim(firing, None, at(500)).await;
        assert_eq!(claimed, Ok(firing.cron.cron_id == other.cron_id));
    }
    set_disabled(&**accounts, USER, false).await;
    let found = due(&stores, at(500), at(0)).await;
    assert_eq!(found, waiting[..1]);
    assert_eq!(stores.crons.claim(&found[0], None, at(500)).await, Ok(true));
    set_disabled(&**accounts, USER, true).await;
    assert_eq!(due(&stores, at(900), at(400)).await, []);
}
