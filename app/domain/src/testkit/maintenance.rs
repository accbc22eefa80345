//! Contract suite of maintenance stores.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use deerflow_core::actor_context::Owner;
use deerflow_core::clock::{Clock, ManualClock};
use deerflow_runtime::runs::RunStatus;
use deerflow_runtime::runs::store::{CreatedResource, RequestKey, RunCommit, RunEnd, WebhookCall};
use deerflow_runtime::testkit::requests::key;
use deerflow_runtime::testkit::stream_log::batch;
use deerflow_runtime::testkit::{
    RunStores, all_events, at, at_once, commit_of, end_in, event, new_run, run, thread,
    with_request,
};

use crate::accounts::{AuditAction, InMemoryAccounts, NewAuditEntry};
use crate::flows::{FlowContent, FlowStore};
use crate::maintenance::{Maintenance, MaintenanceStore, Retention, SweepReport};

pub use super::maintenance_history::*;

/// Generates one test per requirement of maintenance stores.
#[macro_export]
macro_rules! maintenance_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::maintenance]
            duty_has_one_holder_until_expiry
            old_journals_of_ended_runs_are_deleted
            old_streams_of_ended_runs_are_deleted
            sweep_deletes_only_expired_data
            changed_threads_come_in_order_of_change
            old_checkpoints_are_deleted_again_after_changes
        }
    };
}

/// Ports of maintenance over one store.
#[derive(Debug, Clone)]
pub struct MaintenanceStores {
    /// Maintenance store.
    pub upkeep: Arc<dyn MaintenanceStore>,
    /// Run stores.
    pub runs: RunStores,
    /// Flow store.
    pub flows: Arc<dyn FlowStore>,
}

/// Of concurrent callers one acquires the duty, and it may renew it.
pub async fn duty_has_one_holder_until_expiry(open: impl AsyncFn() -> MaintenanceStores) {
    let stores = open().await;
    let take = |holder: String, ttl: Duration| {
        let upkeep = stores.upkeep.clone();
        async move { upkeep.acquire_duty("d", &holder, ttl).await.expect("asked") }
    };
    let long = Duration::from_secs(600);
    let acquired = at_once((0..8).map(|n| take(format!("n{n}"), long))).await;
    assert_eq!(acquired.iter().filter(|acquired| **acquired).count(), 1);
    let holder = format!(
        "n{}",
        acquired.iter().position(|acquired| *acquired).expect("one")
    );
    assert!(take(holder.clone(), long).await);
    assert!(
        stores
            .upkeep
            .acquire_duty("other", "n9", long)
            .await
            .expect("asked")
    );
    assert!(take(holder, Duration::ZERO).await);
    assert!(take("n9".to_owned(), long).await);
}

pub(super) async fn ended(stores: &RunStores, id: &str, on: &str, after: TimeDelta, webhook: bool) {
    let admitted = stores
        .create
        .admit(new_run(id, on))
        .await
        .expect("admitted")
        .run;
    let call = WebhookCall {
        url: "http://h.test/".to_owned(),
        started_at: at(0),
        values: None,
        error: None,
    };
    let end = RunEnd {
        webhook: webhook.then_some(call),
        ..end_in(RunStatus::Error)
    };
    let events = (0..3).map(|n| event(on, id, &n.to_string())).collect();
    let commit = RunCommit {
        end: Some(end),
        events,
        at: at(0) + after,
        ..commit_of(&admitted)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
}

async fn rows(stores: &RunStores, on: &str) -> usize {
    stores
        .events
        .list(&thread(on), &all_events(), &Owner::None)
        .await
        .expect("read")
        .len()
}

/// Deletes in steps.
pub async fn old_journals_of_ended_runs_are_deleted(open: impl AsyncFn() -> MaintenanceStores) {
    let MaintenanceStores { upkeep, runs, .. } = open().await;
    ended(&runs, "r1", "t1", TimeDelta::days(1), false).await;
    ended(&runs, "r2", "t1", TimeDelta::days(3), false).await;
    let working = runs
        .create
        .admit(new_run("r3", "t2"))
        .await
        .expect("admitted")
        .run;
    let events = vec![event("t2", "r3", "x")];
    let commit = RunCommit {
        events,
        ..commit_of(&working)
    };
    runs.commit.commit(commit.into()).await.expect("written");
    let before = at(0) + TimeDelta::days(2);
    assert_eq!(upkeep.delete_run_events(before, 2).await, Ok(2));
    assert_eq!(upkeep.delete_run_events(before, 2).await, Ok(1));
    assert_eq!(upkeep.delete_run_events(before, 2).await, Ok(0));
    assert_eq!((rows(&runs, "t1").await, rows(&runs, "t2").await), (3, 1));
    assert!(
        runs.query
            .get(&run("r1"), &Owner::None)
            .await
            .expect("read")
            .is_some()
    );
}

/// Deletes in steps.
pub async fn old_streams_of_ended_runs_are_deleted(open: impl AsyncFn() -> MaintenanceStores) {
    let MaintenanceStores { upkeep, runs, .. } = open().await;
    ended(&runs, "r1", "t1", TimeDelta::days(1), false).await;
    ended(&runs, "r2", "t1", TimeDelta::days(3), false).await;
    runs.create
        .admit(new_run("r3", "t2"))
        .await
        .expect("admitted");
    for id in ["r1", "r2", "r3"] {
        for first in [1, 6, 11] {
            runs.streams
                .append(batch(id, 1, first..=first + 4))
                .await
                .expect("appended");
        }
    }
    let before = at(0) + TimeDelta::days(2);
    for gone in [2, 1, 0] {
        assert_eq!(upkeep.delete_streams(before, 2).await, Ok(gone));
    }
    for (id, left) in [("r1", 0), ("r2", 15), ("r3", 15)] {
        assert_eq!(
            runs.streams.outline(&run(id)).await.expect("read").tail(),
            left,
            "{id}"
        );
    }
}

/// Retention rules are applied: without a rule for journals, journals are retained.
pub async fn sweep_deletes_only_expired_data(open: impl AsyncFn() -> MaintenanceStores) {
    let MaintenanceStores {
        upkeep,
        runs,
        flows,
    } = open().await;
    for n in 0..450 {
        runs.requests
            .keep(
                &key(&n.to_string()),
                CreatedResource::Thread(thread("t")),
                at(0),
            )
            .await
            .expect("kept");
    }
    let later = RequestKey {
        expires_at: at(0) + TimeDelta::days(99),
        ..key("later")
    };
    let retained = with_request(new_run("r0", "t0"), |request| {
        request.request = Some(later.clone());
    });
    runs.create.admit(retained).await.expect("admitted");
    ended(&runs, "r1", "t1", TimeDelta::days(1), true).await;
    ended(&runs, "r2", "t2", TimeDelta::days(1), true).await;
    runs.streams
        .append(batch("r1", 1, 1..=3))
        .await
        .expect("appended");
    runs.webhooks
        .failed(&[run("r1")], "no", None, at(0) + TimeDelta::days(2))
        .await
        .expect("written");
    let content = |text: &str| FlowContent::new(text, vec![]);
    for (text, days) in [("unused", 18), ("new", 20)] {
        let since = at(0) + TimeDelta::days(days);
        flows
            .store_content("u", content(text), since)
            .await
            .expect("stored");
    }
    let accounts = Arc::new(InMemoryAccounts::default()).stores();
    for days in [1, 19] {
        let entry = NewAuditEntry::new(AuditAction::SignIn, at(0) + TimeDelta::days(days));
        accounts.audit.append(entry).await.expect("written");
    }
    let clock = ManualClock::starting_at(at(0) + TimeDelta::days(20));
    let sweep = Maintenance {
        accounts,
        store: upkeep.clone(),
        requests: runs.requests.clone(),
        outbox: runs.webhooks.clone(),
        checkpoints: runs.checkpoints.clone(),
        flows: flows.clone(),
        clock: Arc::new(clock.clone()),
        holder: "n1".to_owned(),
    };
    let mut rules = Retention {
        dead_letters: TimeDelta::days(14),
        streams: TimeDelta::days(5),
        run_events: None,
        histories: None,
        audit: TimeDelta::days(10),
    };
    assert_eq!(
        upkeep
            .acquire_duty("upkeep", "n2", Duration::from_secs(600))
            .await,
        Ok(true)
    );
    assert_eq!(sweep.sweep(rules).await, Ok(None));
    assert_eq!(
        upkeep.acquire_duty("upkeep", "n2", Duration::ZERO).await,
        Ok(true)
    );
    assert_eq!(
        sweep.sweep(rules).await,
        Ok(Some(SweepReport {
            requests: 450,
            dead_letters: 1,
            batches: 1,
            flow_contents: 1,
            audit_entries: 1,
            ..SweepReport::default()
        }))
    );
    let newer = flows.content("u", &content("new").hash()).await;
    assert_eq!(newer, Ok(Some(content("new"))));
    assert_eq!(
        runs.webhooks
            .letters(false, 9)
            .await
            .map(|letters| letters.len()),
        Ok(1)
    );
    assert!(
        runs.requests
            .known(&later, clock.now())
            .await
            .expect("read")
            .is_some()
    );
    assert_eq!((rows(&runs, "t1").await, rows(&runs, "t2").await), (3, 3));
    rules.run_events = Some(TimeDelta::days(5));
    assert_eq!(
        sweep.sweep(rules).await,
        Ok(Some(SweepReport {
            events: 6,
            ..SweepReport::default()
        }))
    );
}
