//! Administration of webhooks, and its rejection for other users.

use chrono::TimeDelta;
use deerflow_domain::api_keys::{Rights, issue};
use harness::clock::{Clock, SystemClock};
use harness::runtime::runs::RunStatus;
use harness::runtime::runs::store::{
    RunCommit, RunCommitStore, RunCreateStore, RunEnd, WebhookCall, WebhookOutbox,
};
use harness::testkit::{commit_of, end_in, new_run};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::keys::User;
use crate::support::Gateway;

/// Stores the call of an ended run, as a dead letter or as a pending call.
async fn undelivered_call(gateway: &Gateway, n: u128, is_dead: bool) -> String {
    let id = Uuid::from_u128(n).to_string();
    let run = gateway
        .stores
        .admit(new_run(&id, &format!("t{n}")))
        .await
        .expect("admitted")
        .run;
    let now = SystemClock.now();
    let call = WebhookCall {
        url: "https://h.test/x?token=t".to_owned(),
        started_at: now,
        values: None,
        error: None,
    };
    let end = RunEnd {
        webhook: Some(call),
        ..end_in(RunStatus::Error)
    };
    gateway
        .stores
        .commit(
            RunCommit {
                end: Some(end),
                at: now,
                ..commit_of(&run)
            }
            .into(),
        )
        .await
        .expect("ended");
    let again = (!is_dead).then(|| now + TimeDelta::hours(1));
    gateway
        .stores
        .failed(&[run.run_id], "no answer", again, now)
        .await
        .expect("written");
    id
}

async fn ids(gateway: &Gateway, path: &str) -> Vec<Value> {
    let listed = gateway.get(path).await;
    assert_eq!(listed.code(), 200, "{}", listed.text());
    listed
        .json()
        .as_array()
        .expect("a list")
        .iter()
        .map(|call| call["run_id"].clone())
        .collect()
}

#[tokio::test]
async fn dead_letters_are_listed_and_resent() {
    let gateway = Gateway::new();
    let (dead, waiting) = (
        undelivered_call(&gateway, 1, true).await,
        undelivered_call(&gateway, 2, false).await,
    );
    for prefix in ["", "/api"] {
        assert_eq!(
            ids(&gateway, &format!("{prefix}/admin/webhooks")).await,
            [json!(waiting), json!(dead)]
        );
        assert_eq!(
            ids(&gateway, &format!("{prefix}/admin/webhooks?limit=1")).await,
            [json!(waiting)]
        );
        assert_eq!(
            ids(&gateway, &format!("{prefix}/admin/webhooks?dead=true")).await,
            [json!(dead)]
        );
        assert_eq!(
            gateway
                .get(&format!("{prefix}/admin/webhooks?dead=perhaps"))
                .await
                .code(),
            422
        );
        assert_eq!(
            gateway
                .get(&format!("{prefix}/admin/webhooks?limit=0"))
                .await
                .code(),
            422
        );
        let unknown = format!("{prefix}/admin/webhooks/{}/resend", Uuid::from_u128(9));
        assert_eq!(gateway.post(&unknown, json!({})).await.code(), 404);
    }
    let shown = gateway.get("/admin/webhooks?dead=true").await.json()[0].clone();
    assert_eq!(
        (&shown["url"], &shown["last_error"], &shown["due_at"]),
        (
            &json!("https://h.test/x"),
            &json!("no answer"),
            &Value::Null
        )
    );
    assert_eq!(
        gateway
            .post("/admin/webhooks/nonsense/resend", json!({}))
            .await
            .code(),
        422
    );
    assert_eq!(
        gateway
            .post(&format!("/admin/webhooks/{dead}/resend"), json!({}))
            .await
            .code(),
        202
    );
    assert_eq!(
        ids(&gateway, "/admin/webhooks?dead=true").await,
        [] as [Value; 0]
    );
    let now = SystemClock.now();
    let due = gateway
        .stores
        .due(now, now + TimeDelta::minutes(1), 9)
        .await
        .expect("read");
    assert_eq!(
        due.into_iter()
            .map(|call| (call.run.run_id.to_string(), call.tries))
            .collect::<Vec<_>>(),
        [(dead, 0)]
    );
}

#[tokio::test]
async fn webhook_calls_need_an_administrator() {
    let gateway = Gateway::new();
    let dead = undelivered_call(&gateway, 1, true).await;
    let bob = User::new(&gateway, "bob").await;
    let (_, admin) = issue(
        &*gateway.keys,
        "ann",
        Rights::Admin,
        None,
        None,
        SystemClock.now(),
    )
    .await
    .expect("a key");
    for path in [
        "/admin/webhooks".to_owned(),
        "/api/admin/webhooks".to_owned(),
    ] {
        assert_eq!(bob.send("GET", &path, Value::Null).await.code(), 403);
        assert_eq!(
            gateway
                .raw("GET", &path, "", &[("x-api-key", admin.expose_secret())])
                .await
                .code(),
            200
        );
    }
    let resend = format!("/admin/webhooks/{dead}/resend");
    assert_eq!(bob.send("POST", &resend, Value::Null).await.code(), 403);
    assert_eq!(
        ids(&gateway, "/admin/webhooks?dead=true").await,
        [json!(dead)]
    );
    assert_eq!(
        gateway
            .raw("POST", &resend, "", &[("x-api-key", admin.expose_secret())])
            .await
            .code(),
        202
    );
}
