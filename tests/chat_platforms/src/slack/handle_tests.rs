//! Tests of the fake through plain HTTP and WebSocket clients.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::*;
use crate::common::Fault;

async fn fake() -> SlackFake {
    let options = SlackOptions {
        rate_limits: false,
        ack_timeout: Duration::from_millis(100),
        redelivery: vec![Duration::ZERO; 2],
        ..SlackOptions::default()
    };
    SlackFake::start(options).await.unwrap()
}

async fn call(fake: &SlackFake, method: &str, token: &str, body: Value) -> Value {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let address = format!("{}/{method}", fake.api_base());
    let response = client
        .post(address)
        .bearer_auth(token)
        .json(&body)
        .send()
        .await;
    response.unwrap().json().await.unwrap()
}

async fn ticket_url(fake: &SlackFake) -> String {
    let answer = call(fake, "apps.connections.open", "xapp-1", json!({})).await;
    answer["url"].as_str().unwrap().to_owned()
}

async fn connect(fake: &SlackFake, url: &str) -> Result<WebSocketStream<TcpStream>, Error> {
    let address = fake.base().replace("http://", "");
    let stream = TcpStream::connect(address).await.unwrap();
    let (socket, _) = tokio_tungstenite::client_async(url, stream).await?;
    Ok(socket)
}

async fn next(socket: &mut WebSocketStream<TcpStream>) -> Value {
    loop {
        let message = timeout(Duration::from_secs(10), socket.next()).await;
        if let Message::Text(text) = message.unwrap().unwrap().unwrap() {
            return serde_json::from_str(text.as_str()).unwrap();
        }
    }
}

async fn recorded(fake: &SlackFake, method: &str, count: usize) -> Vec<Value> {
    let found = |calls: &[crate::common::Call]| {
        let found: Vec<Value> = calls
            .iter()
            .filter(|call| call.method == method)
            .map(|call| json!({"body": call.body, "error": call.error}))
            .collect();
        (found.len() >= count).then_some(found)
    };
    timeout(Duration::from_secs(10), fake.calls().wait_for(found))
        .await
        .unwrap()
}

#[tokio::test]
async fn ticket_opens_one_connection() {
    let fake = fake().await;
    let url = ticket_url(&fake).await;
    let mut socket = connect(&fake, &url).await.unwrap();
    assert_eq!(next(&mut socket).await["type"], "hello");
    assert!(matches!(connect(&fake, &url).await, Err(Error::Http(_))));
    let refused = call(&fake, "apps.connections.open", "xoxb-1", json!({})).await;
    assert_eq!(refused["error"], "not_allowed_token_type");
}

#[tokio::test]
async fn envelope_comes_again_until_it_is_acknowledged() {
    let fake = fake().await;
    let mut socket = connect(&fake, &ticket_url(&fake).await).await.unwrap();
    next(&mut socket).await;
    fake.say_dm("U1", "hello");
    let first = next(&mut socket).await;
    let second = next(&mut socket).await;
    assert_eq!(
        (&first["retry_attempt"], &second["retry_attempt"]),
        (&json!(0), &json!(1))
    );
    for envelope in [&first, &second] {
        let ack = json!({"envelope_id": envelope["envelope_id"]}).to_string();
        socket.send(Message::text(ack)).await.unwrap();
    }
    let acks = recorded(&fake, "ack", 2).await;
    assert_eq!(
        (&acks[0]["error"], &acks[1]["error"]),
        (&json!(1), &json!(0))
    );
    fake.say_dm("U1", "next");
    assert_eq!(next(&mut socket).await["payload"]["event"]["text"], "next");
}

#[tokio::test]
async fn event_that_no_connection_takes_is_recorded() {
    let fake = fake().await;
    fake.say_dm("U1", "hello");
    recorded(&fake, "undelivered", 1).await;
    assert_eq!(fake.calls().of("unconnected").len(), 3);
}

#[tokio::test]
async fn silent_connection_answers_nothing() {
    let fake = fake().await;
    let mut socket = connect(&fake, &ticket_url(&fake).await).await.unwrap();
    next(&mut socket).await;
    fake.silence();
    fake.say_dm("U1", "hello");
    socket.send(Message::Ping("x".into())).await.unwrap();
    recorded(&fake, "undelivered", 1).await;
    assert!(fake.calls().of("ping").is_empty());
    assert_eq!(fake.connections(), 1);
}

#[tokio::test]
async fn faults_keep_or_drop_the_effect() {
    let fake = fake().await;
    let post = |text: &'static str| {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client
            .post(format!("{}/chat.postMessage", fake.api_base()))
            .bearer_auth("xoxb-1")
            .json(&json!({"channel": "C1", "text": text}));
        async move { request.send().await?.bytes().await }
    };
    fake.faults().script(
        "chat.postMessage",
        [Fault::LoseReply, Fault::Drop, Fault::Ignore],
    );
    assert!(post("lost").await.is_err());
    assert!(post("dropped").await.is_err());
    assert!(post("ignored").await.is_ok());
    assert!(post("posted").await.is_ok());
    let texts: Vec<String> = fake
        .messages("C1")
        .into_iter()
        .map(|message| message.text)
        .collect();
    assert_eq!(texts, ["lost", "posted"]);
}

#[tokio::test]
async fn reading_methods_take_forms_only() {
    let fake = fake().await;
    let answer = call(
        &fake,
        "conversations.history",
        "xoxb-1",
        json!({"channel": "C1"}),
    )
    .await;
    assert_eq!(answer["error"], "invalid_arguments");
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client
        .post(format!("{}/conversations.history", fake.api_base()))
        .bearer_auth("xoxb-1")
        .form(&[("channel", "C1")]);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (&answer["ok"], &answer["has_more"]),
        (&json!(true), &json!(false))
    );
}

#[tokio::test]
async fn tokens_are_not_recorded() {
    let fake = fake().await;
    let body = json!({"token": "xoxb-1", "channel": "C1", "text": "a"});
    call(&fake, "chat.postMessage", "xoxb-1", body).await;
    assert!(
        !serde_json::to_string(&fake.calls().all())
            .unwrap()
            .contains("xoxb")
    );
}
