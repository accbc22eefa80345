//! What a receiver gets, when it is called again, and whom nobody calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use chrono::TimeDelta;
use harness::clock::ManualClock;
use harness::runtime::memory::MemoryStores;
use harness::runtime::runs::RunStatus;
use harness::runtime::runs::store::{RunCommit, RunCommitStore, RunCreateStore, RunEnd, WebhookCall, WebhookOutbox};
use harness::runtime::tasks::{TaskKind, Tasks};
use harness::testkit::{at, commit_of, end_in, new_run};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;

/// A receiver that refuses the first calls.
struct Receiver {
    url: String,
    bodies: Arc<Mutex<Vec<Value>>>,
    _tasks: Tasks,
}

async fn receiver(refusals: u32, status: StatusCode) -> Receiver {
    let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
    let (kept, left) = (bodies.clone(), Arc::new(AtomicU32::new(refusals)));
    let hook = post(move |axum::Json(body): axum::Json<Value>| {
        kept.lock().push(body);
        let refuse = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        async move { if refuse { status } else { StatusCode::OK } }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let tasks = Tasks::new();
    tasks.spawn(TaskKind::Service, "receiver", async move { axum::serve(listener, Router::new().route("/hook", hook)).await });
    Receiver { url, bodies, _tasks: tasks }
}

/// A sender, its outbox with the call of one ended run, and its clock.
async fn sender(url: &str, policy: WebhookPolicy) -> (WebhookSender, Arc<MemoryStores>, ManualClock) {
    let stores = Arc::new(MemoryStores::new());
    let run = stores.admit(new_run("r1", "t1")).await.unwrap().run;
    let call = WebhookCall {
        url: url.to_owned(),
        started_at: at(1),
        values: Some(json!({ "messages": [] })),
        error: Some(("ModelError".to_owned(), "no".to_owned())),
    };
    let end = RunEnd { webhook: Some(call), ..end_in(RunStatus::Error) };
    stores.commit(RunCommit { end: Some(end), ..commit_of(&run) }).await.unwrap();
    let clock = ManualClock::starting_at(at(9));
    let options = SenderOptions { policy, tries: 3, ..SenderOptions::default() };
    (WebhookSender::new(stores.clone(), Arc::new(clock.clone()), options).unwrap(), stores, clock)
}

const ANY: WebhookPolicy = WebhookPolicy { allow_private: true };

#[tokio::test]
async fn a_receiver_gets_the_run_and_what_it_left_once() {
    let receiver = receiver(0, StatusCode::OK).await;
    let (sender, _, clock) = sender(&receiver.url, ANY).await;
    assert_eq!(sender.send_due().await, Ok(1));
    clock.advance(TimeDelta::days(1));
    assert_eq!(sender.send_due().await, Ok(0));
    let bodies = receiver.bodies.lock();
    let [body] = bodies.as_slice() else { panic!("{bodies:?}") };
    assert_eq!((&body["run_id"], &body["thread_id"], &body["status"]), (&json!("r1"), &json!("t1"), &json!("error")));
    assert_eq!(body["error"], json!({ "error": "ModelError", "message": "no" }));
    assert_eq!(body["values"], json!({ "messages": [] }));
    assert_eq!((&body["run_started_at"], &body["run_ended_at"]), (&json!(iso(at(1))), &json!(iso(at(5)))));
    assert_eq!(body["webhook_sent_at"], iso(at(9)));
}

#[tokio::test]
async fn who_refuses_is_called_again_later_and_not_for_ever() {
    let receiver = receiver(9, StatusCode::INTERNAL_SERVER_ERROR).await;
    let (sender, _, clock) = sender(&receiver.url, ANY).await;
    assert_eq!(sender.send_due().await, Ok(1));
    assert_eq!(sender.send_due().await, Ok(0));
    for wait in [5, 10] {
        clock.advance(TimeDelta::seconds(wait) - TimeDelta::milliseconds(1));
        assert_eq!(sender.send_due().await, Ok(0));
        clock.advance(TimeDelta::milliseconds(1));
        assert_eq!(sender.send_due().await, Ok(1));
    }
    clock.advance(TimeDelta::days(9));
    assert_eq!(sender.send_due().await, Ok(0));
    assert_eq!(receiver.bodies.lock().len(), 3);
}

#[tokio::test]
async fn who_is_gone_or_may_not_be_called_is_not_called_again() {
    let gone = receiver(9, StatusCode::GONE).await;
    let (sender_of_gone, _, clock) = sender(&gone.url, ANY).await;
    assert_eq!(sender_of_gone.send_due().await, Ok(1));
    clock.advance(TimeDelta::days(9));
    assert_eq!((sender_of_gone.send_due().await, gone.bodies.lock().len()), (Ok(0), 1));
    let private = receiver(0, StatusCode::OK).await;
    for url in [private.url.clone(), private.url.replace("127.0.0.1", "localhost")] {
        let (sender, _, _) = sender(&url, WebhookPolicy::default()).await;
        assert_eq!(sender.send_due().await, Ok(1));
    }
    assert!(private.bodies.lock().is_empty());
}

#[tokio::test]
async fn two_senders_do_not_send_the_same_call() {
    let receiver = receiver(0, StatusCode::OK).await;
    let (_, stores, _) = sender(&receiver.url, ANY).await;
    let until = at(9) + TimeDelta::from_std(Duration::from_secs(60)).unwrap();
    assert_eq!(stores.due(at(9), until, 9).await.map(|calls| calls.len()), Ok(1));
    assert_eq!(stores.due(at(10), until, 9).await.map(|calls| calls.len()), Ok(0));
    assert_eq!(stores.due(until, until, 9).await.map(|calls| calls.len()), Ok(1));
}
