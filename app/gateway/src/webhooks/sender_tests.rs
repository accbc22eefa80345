//! Requests that a receiver gets, retries, and receivers that are never called.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use chrono::TimeDelta;
use harness::clock::ManualClock;
use harness::runtime::in_memory::InMemoryStores;
use harness::runtime::runs::RunStatus;
use harness::runtime::runs::store::{
    RunCommit, RunCommitStore, RunCreateStore, RunEnd, WebhookCall, WebhookOutbox,
};
use harness::runtime::tasks::{TaskKind, Tasks};
use harness::testkit::{at, commit_of, end_in, new_run};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::*;

/// A receiver that rejects the first calls.
struct Receiver {
    url: String,
    bodies: Arc<Mutex<Vec<Value>>>,
    calls: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    /// Notified at each call.
    call_notify: Arc<Notify>,
    _tasks: Tasks,
}

async fn receiver(refusals: u32, status: StatusCode) -> Receiver {
    let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
    let (received, remaining) = (bodies.clone(), Arc::new(AtomicU32::new(refusals)));
    let calls: Arc<Mutex<Vec<(HeaderMap, Bytes)>>> = Arc::default();
    let call_notify: Arc<Notify> = Arc::default();
    let (seen, notify) = (calls.clone(), call_notify.clone());
    let hook = post(move |headers: HeaderMap, body: Bytes| {
        received.lock().push(serde_json::from_slice(&body).unwrap());
        seen.lock().push((headers, body));
        notify.notify_one();
        let refuse = remaining
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| {
                remaining.checked_sub(1)
            })
            .is_ok();
        async move { if refuse { status } else { StatusCode::OK } }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let tasks = Tasks::new();
    tasks.spawn(TaskKind::Service, "receiver", async move {
        axum::serve(listener, Router::new().route("/hook", hook)).await
    });
    Receiver {
        url,
        bodies,
        calls,
        call_notify,
        _tasks: tasks,
    }
}

/// Returns a sender, its outbox with the call of one ended run, and its clock.
async fn sender(
    url: &str,
    policy: WebhookPolicy,
) -> (WebhookSender, Arc<InMemoryStores>, ManualClock) {
    sender_with(
        url,
        SenderOptions {
            policy,
            ..SenderOptions::default()
        },
    )
    .await
}

async fn sender_with(
    url: &str,
    options: SenderOptions,
) -> (WebhookSender, Arc<InMemoryStores>, ManualClock) {
    let stores = Arc::new(InMemoryStores::new());
    ended(&stores, "r1", url).await;
    let clock = ManualClock::starting_at(at(9));
    let options = SenderOptions {
        key: Some(SigningKey::new(&"secret".into()).unwrap()),
        ..options
    };
    (
        WebhookSender::new(stores.clone(), Arc::new(clock.clone()), options).unwrap(),
        stores,
        clock,
    )
}

/// Ends a run on its own thread.
async fn ended(stores: &InMemoryStores, run: &str, url: &str) {
    let run = stores
        .admit(new_run(run, &format!("t-{run}")))
        .await
        .unwrap()
        .run;
    let call = WebhookCall {
        url: url.to_owned(),
        started_at: at(1),
        values: Some(json!({ "messages": [] })),
        error: Some(("ModelError".to_owned(), "no".to_owned())),
    };
    let end = RunEnd {
        webhook: Some(call),
        ..end_in(RunStatus::Error)
    };
    let commit = RunCommit {
        end: Some(end),
        ..commit_of(&run)
    };
    stores.commit(commit.into()).await.unwrap();
}

const ANY: WebhookPolicy = WebhookPolicy {
    allow_private: true,
};

#[tokio::test]
async fn receiver_gets_the_run_and_its_values_once() {
    let receiver = receiver(0, StatusCode::OK).await;
    let (sender, _, clock) = sender(&receiver.url, ANY).await;
    assert_eq!(sender.send_due().await, Ok(1));
    clock.advance(TimeDelta::days(1));
    assert_eq!(sender.send_due().await, Ok(0));
    let bodies = receiver.bodies.lock();
    let [body] = bodies.as_slice() else {
        panic!("{bodies:?}")
    };
    assert_eq!(
        (&body["run_id"], &body["thread_id"], &body["status"]),
        (&json!("r1"), &json!("t-r1"), &json!("error"))
    );
    assert_eq!(
        body["error"],
        json!({ "error": "ModelError", "message": "no" })
    );
    assert_eq!(body["values"], json!({ "messages": [] }));
    assert_eq!(
        (&body["run_started_at"], &body["run_ended_at"]),
        (&json!(iso(at(1))), &json!(iso(at(5))))
    );
    assert_eq!(body["webhook_sent_at"], iso(at(9)));
}

#[tokio::test]
async fn rejected_call_is_retried_a_limited_number_of_times() {
    let receiver = receiver(99, StatusCode::INTERNAL_SERVER_ERROR).await;
    let (sender, stores, clock) = sender(&receiver.url, ANY).await;
    assert_eq!(sender.send_due().await, Ok(1));
    assert_eq!(sender.send_due().await, Ok(0));
    for wait in [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200].map(TimeDelta::seconds) {
        clock.advance(wait * 9 / 10 - TimeDelta::milliseconds(1));
        assert_eq!(sender.send_due().await, Ok(0), "{wait}");
        clock.advance(wait / 5 + TimeDelta::milliseconds(1));
        assert_eq!(sender.send_due().await, Ok(1), "{wait}");
    }
    clock.advance(TimeDelta::days(9));
    assert_eq!(sender.send_due().await, Ok(0));
    assert_eq!(receiver.bodies.lock().len(), 10);
    // A dead letter until it is resent.
    let dead = stores.letters(true, 9).await.unwrap();
    assert_eq!(
        (dead.len(), dead[0].tries, dead[0].died_at.is_some()),
        (1, 10, true)
    );
    assert_eq!(stores.resend(&dead[0].run_id, clock.now()).await, Ok(true));
    assert_eq!(sender.send_due().await, Ok(1));
}

#[tokio::test]
async fn gone_or_forbidden_receiver_is_not_retried() {
    let gone_receiver = receiver(9, StatusCode::GONE).await;
    let (sender_to_gone, _, clock) = sender(&gone_receiver.url, ANY).await;
    assert_eq!(sender_to_gone.send_due().await, Ok(1));
    clock.advance(TimeDelta::days(9));
    assert_eq!(
        (
            sender_to_gone.send_due().await,
            gone_receiver.bodies.lock().len()
        ),
        (Ok(0), 1)
    );
    let private = receiver(0, StatusCode::OK).await;
    for url in [
        private.url.clone(),
        private.url.replace("127.0.0.1", "localhost"),
    ] {
        let (sender, _, _) = sender(&url, WebhookPolicy::default()).await;
        assert_eq!(sender.send_due().await, Ok(1));
    }
    assert!(private.bodies.lock().is_empty());
}

#[tokio::test]
async fn only_unavailable_receivers_are_paused() {
    // A bound port without a listener.
    let unused_port = tokio::net::TcpSocket::new_v4().unwrap();
    unused_port.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let dead = format!("http://{}/hook", unused_port.local_addr().unwrap());
    for (status, works) in [
        (404, true),
        (401, true),
        (302, true),
        (410, true),
        (429, false),
        (500, false),
        (503, false),
    ] {
        let receiver = receiver(99, StatusCode::from_u16(status).unwrap()).await;
        let (sender, stores, _) = sender(&receiver.url, ANY).await;
        let call = stores.due(at(9), at(99), 1).await.unwrap().remove(0);
        assert_eq!(
            sender.deliver(call).await.unwrap_or(true),
            works,
            "{status}"
        );
    }
    let (sender, stores, _) = sender(&dead, ANY).await;
    let call = stores.due(at(9), at(99), 1).await.unwrap().remove(0);
    assert_eq!(sender.deliver(call).await, Some(false));
    drop(unused_port);
}

#[tokio::test]
async fn calls_to_a_dead_receiver_become_dead_letters_in_a_day() {
    let (sender, stores, clock) = sender("http://127.0.0.1:9/", ANY).await;
    let mut limits = ReceiverLimits::default();
    let call = stores.due(at(9), at(9), 1).await.unwrap().remove(0);
    let (receiver, began) = (receiver_of(&call), clock.now());
    let mut attempts = 0;
    while stores.letters(true, 9).await.unwrap().is_empty() {
        while limits.reserve(&receiver, clock.now()).is_ok() {
            limits.release(&receiver, Some(false), clock.now());
        }
        assert!(sender.take(&mut limits).await.unwrap().0.is_empty());
        let due = stores.letters(false, 9).await.unwrap()[0].due_at;
        clock.advance(due.map_or(TimeDelta::zero(), |due| due - clock.now()));
        attempts += 1;
    }
    assert_eq!(attempts, 10);
    assert!(
        (TimeDelta::hours(22)..TimeDelta::hours(26)).contains(&(clock.now() - began)),
        "{}",
        clock.now() - began
    );
    let dead = stores.letters(true, 9).await.unwrap();
    assert!(
        dead[0]
            .last_error
            .as_deref()
            .is_some_and(|error| error.contains("is paused")),
        "{dead:?}"
    );
}

#[tokio::test]
async fn two_senders_do_not_send_the_same_call() {
    let receiver = receiver(0, StatusCode::OK).await;
    let (_, stores, _) = sender(&receiver.url, ANY).await;
    let until = at(9) + TimeDelta::from_std(Duration::from_secs(60)).unwrap();
    assert_eq!(
        stores.due(at(9), until, 9).await.map(|calls| calls.len()),
        Ok(1)
    );
    assert_eq!(
        stores.due(at(10), until, 9).await.map(|calls| calls.len()),
        Ok(0)
    );
    assert_eq!(
        stores.due(until, until, 9).await.map(|calls| calls.len()),
        Ok(1)
    );
}

#[tokio::test]
async fn call_has_an_id_and_a_signature() {
    let receiver = receiver(1, StatusCode::BAD_GATEWAY).await;
    let (sender, _, clock) = sender(&receiver.url, ANY).await;
    for _ in 0..2 {
        assert_eq!(sender.send_due().await, Ok(1));
        clock.advance(TimeDelta::seconds(6));
    }
    for (n, (headers, body)) in receiver.calls.lock().iter().enumerate() {
        let header = |name: &str| headers[name].to_str().unwrap().to_owned();
        let sent: i64 = header("webhook-timestamp").parse().unwrap();
        assert_eq!(
            (header("webhook-id"), header("webhook-attempt")),
            ("r1".to_owned(), (n + 1).to_string())
        );
        assert_eq!(sent, (at(9) + TimeDelta::seconds(6) * n as i32).timestamp());
        assert_eq!(
            header("webhook-signature"),
            SigningKey::new(&"secret".into())
                .unwrap()
                .sign("r1", sent, body)
        );
    }
}

#[tokio::test]
async fn hanging_receiver_does_not_delay_other_receivers() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let slow = format!("http://{}/hook", silent.local_addr().unwrap());
    let receiver = receiver(0, StatusCode::OK).await;
    // Longer than the test: calls must arrive without a timeout of the silent receiver.
    let timeout = Duration::from_secs(3_600);
    let (sender, stores, _) = sender_with(
        &slow,
        SenderOptions {
            policy: ANY,
            timeout,
            ..SenderOptions::default()
        },
    )
    .await;
    for n in 0..100 {
        ended(&stores, &format!("s{n}"), &slow).await;
    }
    for n in 0..12 {
        ended(&stores, &format!("z{n}"), &receiver.url).await;
    }
    let tasks = Tasks::new();
    sender.start(&tasks);
    let all_there = async {
        while receiver.bodies.lock().len() < 12 {
            receiver.call_notify.notified().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all_there)
        .await
        .expect("the calls of the other receiver");
    let remaining = stores.letters(false, 999).await.unwrap();
    assert!(remaining.iter().all(|letter| letter.tries == 0));
    tasks.shut_down().await;
}
