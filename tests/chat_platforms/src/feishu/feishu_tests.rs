//! Tests of the fake with plain HTTP.

use std::time::Duration;

use serde_json::{Value, json};

use super::{FeishuFake, FeishuIncoming, FeishuOptions};
use crate::common::Fault;

struct Caller {
    fake: FeishuFake,
    http: reqwest::Client,
    token: String,
}

impl Caller {
    async fn start(options: FeishuOptions) -> Self {
        let fake = FeishuFake::start(options).await.unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "a test needs no timeouts or proxies"
        )]
        let http = reqwest::Client::new();
        let address = format!(
            "{}/open-apis/auth/v3/tenant_access_token/internal",
            fake.base()
        );
        let body = json!({"app_id": "cli_a", "app_secret": "secret"});
        let answer: Value = http
            .post(address)
            .json(&body)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let token = answer["tenant_access_token"].as_str().unwrap().to_owned();
        Self { fake, http, token }
    }

    async fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let address = format!("{}/open-apis/{path}", self.fake.base());
        let response = self
            .http
            .request(method.parse().unwrap(), address)
            .bearer_auth(&self.token)
            .json(body)
            .send()
            .await
            .unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap())
    }
}

fn text_body(uuid: &str) -> Value {
    json!({"msg_type": "text", "content": r#"{"text":"hi"}"#, "uuid": uuid})
}

#[tokio::test]
async fn reply_with_repeated_uuid_sends_once() {
    let caller = Caller::start(FeishuOptions::default()).await;
    let id = caller
        .fake
        .write(FeishuIncoming::direct("oc_1", "ou_1", "hello"));
    let path = format!("im/v1/messages/{id}/reply");
    let (_, first) = caller.call("POST", &path, &text_body("u1")).await;
    let (_, second) = caller.call("POST", &path, &text_body("u1")).await;
    assert_eq!(first["data"]["message_id"], second["data"]["message_id"]);
    assert_eq!(caller.fake.sent().len(), 1);
    assert_eq!(caller.fake.calls().of("POST im/v1/messages/reply").len(), 2);
}

#[tokio::test]
async fn sixth_message_of_a_second_is_refused() {
    let caller = Caller::start(FeishuOptions::default()).await;
    caller.fake.add_chat("oc_1", false);
    let mut codes = Vec::new();
    for number in 0..6 {
        let mut body = text_body(&format!("u{number}"));
        body["receive_id"] = json!("oc_1");
        let path = "im/v1/messages?receive_id_type=chat_id";
        codes.push(caller.call("POST", path, &body).await.1["code"].clone());
    }
    assert_eq!(codes, [0, 0, 0, 0, 0, 230_020]);
}

#[tokio::test]
async fn card_sequence_that_does_not_grow_is_refused() {
    let caller = Caller::start(FeishuOptions::default()).await;
    let data = json!({
        "schema": "2.0", "config": {"streaming_mode": true, "update_multi": true},
        "body": {"elements": [{"tag": "markdown", "content": "", "element_id": "answer"}]},
    });
    let body = json!({"type": "card_json", "data": data.to_string()});
    let (_, created) = caller.call("POST", "cardkit/v1/cards", &body).await;
    let id = created["data"]["card_id"].as_str().unwrap().to_owned();
    let path = format!("cardkit/v1/cards/{id}/elements/answer/content");
    let body = json!({"content": "a", "sequence": 1, "uuid": "u"});
    assert_eq!(caller.call("PUT", &path, &body).await.1["code"], 0);
    assert_eq!(caller.call("PUT", &path, &body).await.1["code"], 300_317);
    let settings = json!({"settings": "{\"config\":{\"streaming_mode\":false}}", "sequence": 2});
    let path_of_settings = format!("cardkit/v1/cards/{id}/settings");
    assert_eq!(
        caller.call("PATCH", &path_of_settings, &settings).await.1["code"],
        0
    );
    let body = json!({"content": "b", "sequence": 3, "uuid": "u"});
    assert_eq!(caller.call("PUT", &path, &body).await.1["code"], 300_309);
    assert_eq!(caller.fake.cards()[0].updates, ["a"]);
}

#[tokio::test]
async fn scripted_faults_apply_once_and_in_order() {
    let caller = Caller::start(FeishuOptions::default()).await;
    let id = caller
        .fake
        .write(FeishuIncoming::direct("oc_1", "ou_1", "hello"));
    let limited = Fault::RateLimited {
        retry_after: 3.0,
        silent: false,
    };
    caller.fake.faults().script(
        "POST im/v1/messages/reply",
        [limited, Fault::Drop, Fault::LoseReply],
    );
    let address = format!("{}/open-apis/im/v1/messages/{id}/reply", caller.fake.base());
    let request = || {
        caller
            .http
            .post(&address)
            .bearer_auth(&caller.token)
            .json(&text_body("u"))
            .send()
    };
    let limited = request().await.unwrap();
    assert_eq!(limited.status(), 429);
    assert_eq!(limited.headers()["x-ogw-ratelimit-reset"], "3");
    for count in [0, 1] {
        let read = async { request().await?.bytes().await };
        assert!(read.await.is_err());
        assert_eq!(caller.fake.sent().len(), count);
    }
    assert_eq!(request().await.unwrap().status(), 200);
    assert_eq!(caller.fake.sent().len(), 1);
}

#[tokio::test]
async fn missing_scope_and_expired_token_are_refused() {
    let caller = Caller::start(FeishuOptions::default()).await;
    caller.fake.remove_scope("cardkit:card:write");
    let (status, body) = caller.call("POST", "cardkit/v1/cards", &json!({})).await;
    assert_eq!((status, &body["code"]), (400, &json!(99_991_672)));
    caller.fake.expire_tokens();
    let (_, body) = caller.call("GET", "bot/v3/info", &json!({})).await;
    assert_eq!(body["code"], 99_991_663);
}

#[tokio::test]
async fn unacknowledged_event_is_redelivered_and_abandoned() {
    let mut line = super::line::FeishuLine::default();
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    line.connections
        .push(super::line::FeishuConnection { id: 1, sender });
    let options = FeishuOptions {
        redelivery: vec![Duration::from_secs(15)],
        part_bytes: 4,
        ..FeishuOptions::default()
    };
    let start = std::time::Instant::now();
    line.push("m-1".to_owned(), "event", b"payload".to_vec(), start);
    let next = line.deliver(3, &options, start);
    assert_eq!(next, Some(start + Duration::from_secs(15)));
    line.deliver(3, &options, start + Duration::from_secs(14));
    line.deliver(3, &options, start + Duration::from_secs(15));
    assert_eq!(line.unacknowledged(), 1);
    line.deliver(3, &options, start + Duration::from_secs(15));
    assert_eq!(line.unacknowledged(), 0);
    let mut frames = 0;
    while received.try_recv().is_ok() {
        frames += 1;
    }
    assert_eq!(frames, 4);
}
