//! What the outbox of webhooks promises.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::{RunStores, at, at_once, commit_of, end_in, new_run, run};
use crate::runtime::runs::RunStatus;
use crate::runtime::runs::store::{NewRun, RunCommit, RunEnd, WebhookCall, WebhookDelivery, WebhookOutbox};

/// One test per promise of the outbox.
#[macro_export]
macro_rules! webhook_outbox_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::webhooks]
            a_call_is_written_with_the_end_and_stays_until_it_is_taken
            a_call_that_was_not_taken_is_due_again_when_it_was_said
            a_call_is_leased_to_one_caller
            a_call_outlives_its_temporary_thread
        }
    };
}

fn call() -> WebhookCall {
    let error = Some(("E".to_owned(), "why".to_owned()));
    WebhookCall { url: "http://h.test/\u{e9}".to_owned(), started_at: at(2), values: Some(json!({ "a": [1] })), error }
}

async fn ended(stores: &RunStores, new: NewRun) {
    let record = stores.create.admit(new).await.expect("admitted").run;
    let end = RunEnd { webhook: Some(call()), ..end_in(RunStatus::Error) };
    let commit = RunCommit { batch: 1, end: Some(end), ..commit_of(&record) };
    for _ in 0..2 {
        stores.commit.commit(commit.clone()).await.expect("ended");
    }
}

async fn due(outbox: &dyn WebhookOutbox, now: DateTime<Utc>) -> Vec<WebhookDelivery> {
    outbox.due(now, at(100), 9).await.expect("read")
}

/// However often the end is sent.
pub async fn a_call_is_written_with_the_end_and_stays_until_it_is_taken(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let outbox = stores.webhooks.clone();
    assert_eq!(due(&*outbox, at(9)).await, []);
    ended(&stores, NewRun { webhook: Some(call().url), ..new_run("r1", "t1") }).await;
    let calls = due(&*outbox, at(9)).await;
    let [delivery] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!((delivery.call.clone(), delivery.ended_at, delivery.tries), (call(), at(5), 0));
    assert_eq!((delivery.run.run_id.clone(), delivery.run.status, &delivery.run.webhook), (run("r1"), RunStatus::Error, &Some(call().url)));
    outbox.delivered(&run("r1")).await.expect("forgotten");
    assert_eq!(due(&*outbox, at(1_000)).await, []);
}

/// Or never again.
pub async fn a_call_that_was_not_taken_is_due_again_when_it_was_said(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let outbox = stores.webhooks.clone();
    ended(&stores, new_run("r1", "t1")).await;
    assert_eq!(due(&*outbox, at(9)).await.len(), 1);
    outbox.failed(&run("r1"), "no \0 answer", Some(at(20))).await.expect("written");
    assert_eq!(due(&*outbox, at(19)).await, []);
    assert_eq!(due(&*outbox, at(20)).await[0].tries, 1);
    outbox.failed(&run("r1"), "no answer", None).await.expect("written");
    assert_eq!(due(&*outbox, at(1_000)).await, []);
}

/// Until the lease is over.
pub async fn a_call_is_leased_to_one_caller(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let outbox = stores.webhooks.clone();
    for n in 0..3 {
        ended(&stores, new_run(&format!("r{n}"), &format!("t{n}"))).await;
    }
    let taken = at_once((0..8).map(|_| {
        let outbox = outbox.clone();
        async move { outbox.due(at(9), at(100), 2).await.expect("read").len() }
    }))
    .await;
    assert_eq!(taken.into_iter().sum::<usize>(), 3);
    assert_eq!(due(&*outbox, at(99)).await, []);
    assert_eq!(due(&*outbox, at(100)).await.len(), 3);
}

/// With all that was said in the run.
pub async fn a_call_outlives_its_temporary_thread(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let outbox = stores.webhooks.clone();
    let new = NewRun { temporary_thread: true, ..new_run("r1", "t1") };
    let kwargs = new.kwargs.clone();
    ended(&stores, new).await;
    let calls = due(&*outbox, at(9)).await;
    assert_eq!((calls[0].run.kwargs.clone(), calls[0].call.values.clone()), (kwargs, Some(json!({ "a": [1] }))));
    assert_eq!(stores.delete.delete(&run("r1")).await, Ok(true));
    assert_eq!(due(&*outbox, at(100)).await.len(), 1);
}
