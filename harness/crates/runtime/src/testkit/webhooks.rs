//! Contract of the webhook outbox.

use chrono::{DateTime, Utc};
use serde_json::json;

use super::{
    RunStores, at, at_once, commit_of, end_in, new_run, on_temporary_thread, run, with_request,
};
use crate::runs::RunStatus;
use crate::runs::store::{NewRun, RunCommit, RunEnd, WebhookCall, WebhookDelivery, WebhookOutbox};

/// Generates one test per guarantee of the outbox.
#[macro_export]
macro_rules! webhook_outbox_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::webhooks]
            webhook_is_stored_with_end_until_delivered
            failed_webhook_is_retried_at_requested_time
            webhook_is_leased_to_one_sender
            untried_webhooks_are_released
            dead_letter_is_listed_and_redelivered
            dead_letters_are_swept_with_their_payload
            webhook_survives_its_temporary_thread
        }
    };
}

fn call() -> WebhookCall {
    let error = Some(("E".to_owned(), "why".to_owned()));
    WebhookCall {
        url: "http://h.test/\u{e9}".to_owned(),
        started_at: at(2),
        values: Some(json!({ "a": [1] })),
        error,
    }
}

async fn ended(stores: &RunStores, new: NewRun) {
    let record = stores.create.admit(new).await.expect("admitted").run;
    let end = RunEnd {
        webhook: Some(call()),
        ..end_in(RunStatus::Error)
    };
    let commit = RunCommit {
        batch: 1,
        end: Some(end),
        ..commit_of(&record)
    };
    for _ in 0..2 {
        stores
            .commit
            .commit(commit.clone().into())
            .await
            .expect("ended");
    }
}

async fn due(outbox: &dyn WebhookOutbox, now: DateTime<Utc>) -> Vec<WebhookDelivery> {
    outbox.due(now, at(100), 9).await.expect("read")
}

/// The call is stored once, even if the end is committed several times.
pub async fn webhook_is_stored_with_end_until_delivered(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let outbox = stores.webhooks.clone();
    assert_eq!(due(&*outbox, at(9)).await, []);
    ended(
        &stores,
        with_request(new_run("r1", "t1"), |request| {
            request.webhook = Some(call().url);
        }),
    )
    .await;
    let calls = due(&*outbox, at(9)).await;
    let [delivery] = calls.as_slice() else {
        panic!("{calls:?}")
    };
    assert_eq!(
        (delivery.call.clone(), delivery.ended_at, delivery.tries),
        (call(), at(5), 0)
    );
    assert_eq!(
        (
            delivery.run.run_id.clone(),
            delivery.run.status,
            &delivery.run.webhook
        ),
        (run("r1"), RunStatus::Error, &Some(call().url))
    );
    outbox.delivered(&run("r1")).await.expect("forgotten");
    assert_eq!(due(&*outbox, at(1_000)).await, []);
}

/// A failed call is retried at the specified time. Without a time, it becomes a dead letter.
pub async fn failed_webhook_is_retried_at_requested_time(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let outbox = stores.webhooks.clone();
    ended(&stores, new_run("r1", "t1")).await;
    assert_eq!(due(&*outbox, at(9)).await.len(), 1);
    outbox
        .failed(&[run("r1")], "no \0 answer", Some(at(20)), at(9))
        .await
        .expect("written");
    assert_eq!(due(&*outbox, at(19)).await, []);
    assert_eq!(due(&*outbox, at(20)).await[0].tries, 1);
    outbox
        .failed(&[run("r1")], "no answer", None, at(20))
        .await
        .expect("written");
    assert_eq!(due(&*outbox, at(1_000)).await, []);
}

/// A leased call is not returned to others until the lease expires.
pub async fn webhook_is_leased_to_one_sender(open: impl AsyncFn() -> RunStores) {
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

/// A released call was not attempted, so its attempt count is unchanged.
pub async fn untried_webhooks_are_released(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let outbox = stores.webhooks.clone();
    for n in 0..3 {
        ended(&stores, new_run(&format!("r{n}"), &format!("t{n}"))).await;
    }
    assert_eq!(due(&*outbox, at(9)).await.len(), 3);
    outbox
        .put_back(&[run("r0"), run("r2"), run("gone")], at(12))
        .await
        .expect("written");
    assert_eq!(due(&*outbox, at(11)).await, []);
    let again = due(&*outbox, at(12)).await;
    assert_eq!(
        again.iter().map(|call| call.tries).collect::<Vec<_>>(),
        [0, 0]
    );
    outbox
        .failed(&[run("r1"), run("gone")], "no", None, at(12))
        .await
        .expect("written");
    outbox
        .put_back(&[run("r1")], at(13))
        .await
        .expect("written");
    assert_eq!(due(&*outbox, at(13)).await, []);
    outbox.put_back(&[], at(13)).await.expect("nothing");
}

/// A redelivered call has as many attempts as a new one.
pub async fn dead_letter_is_listed_and_redelivered(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let outbox = stores.webhooks.clone();
    for n in 0..3 {
        ended(&stores, new_run(&format!("r{n}"), &format!("t{n}"))).await;
    }
    outbox
        .failed(&[run("r1")], "no \0 answer", None, at(7))
        .await
        .expect("written");
    outbox
        .failed(&[run("r2")], "later", Some(at(50)), at(7))
        .await
        .expect("written");
    let all = outbox.letters(false, 9).await.expect("read");
    assert_eq!(
        all.iter()
            .map(|entry| entry.run_id.as_str())
            .collect::<Vec<_>>(),
        ["r2", "r1", "r0"]
    );
    let dead = outbox.letters(true, 9).await.expect("read");
    let [entry] = dead.as_slice() else {
        panic!("{dead:?}")
    };
    assert_eq!(
        (
            entry.run_id.clone(),
            entry.url.clone(),
            entry.ended_at,
            entry.tries
        ),
        (run("r1"), call().url, at(5), 1)
    );
    assert_eq!((entry.due_at, entry.died_at), (None, Some(at(7))));
    assert!(
        entry
            .last_error
            .as_deref()
            .is_some_and(|error| error.starts_with("no ")),
        "{entry:?}"
    );
    assert_eq!(outbox.resend(&run("gone"), at(8)).await, Ok(false));
    assert_eq!(outbox.resend(&run("r1"), at(8)).await, Ok(true));
    assert_eq!(outbox.letters(true, 9).await, Ok(vec![]));
    let calls = due(&*outbox, at(8)).await;
    assert_eq!(
        calls
            .iter()
            .map(|call| (call.run.run_id.as_str(), call.tries))
            .collect::<Vec<_>>(),
        [("r0", 0), ("r1", 0)]
    );
    assert_eq!(
        outbox.letters(false, 1).await.map(|letters| letters.len()),
        Ok(1)
    );
}

/// Only dead letters are swept.
pub async fn dead_letters_are_swept_with_their_payload(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let outbox = stores.webhooks.clone();
    for n in 0..4 {
        ended(&stores, new_run(&format!("r{n}"), &format!("t{n}"))).await;
    }
    for (n, died) in [(0, 10), (1, 11), (2, 12)] {
        outbox
            .failed(&[run(&format!("r{n}"))], "no", None, at(died))
            .await
            .expect("written");
    }
    assert_eq!(outbox.sweep(at(9), 9).await, Ok(0));
    assert_eq!(outbox.sweep(at(11), 1).await, Ok(1));
    assert_eq!(outbox.sweep(at(11), 9).await, Ok(1));
    let left = outbox.letters(false, 9).await.expect("read");
    assert_eq!(
        left.iter()
            .map(|entry| entry.run_id.as_str())
            .collect::<Vec<_>>(),
        ["r3", "r2"]
    );
}

/// The call retains the whole content of the run.
pub async fn webhook_survives_its_temporary_thread(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let outbox = stores.webhooks.clone();
    let new = on_temporary_thread(new_run("r1", "t1"));
    let kwargs = new.request().presentation.request_echo.clone();
    ended(&stores, new).await;
    let calls = due(&*outbox, at(9)).await;
    assert_eq!(
        (calls[0].run.kwargs.clone(), calls[0].call.values.clone()),
        (kwargs, Some(json!({ "a": [1] })))
    );
    assert_eq!(stores.delete.delete(&run("r1")).await, Ok(true));
    assert_eq!(due(&*outbox, at(100)).await.len(), 1);
}
