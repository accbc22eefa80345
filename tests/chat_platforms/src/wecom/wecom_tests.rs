//! Strictness of the fake.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::*;
use crate::common::Fault;

type Client = WebSocketStream<TcpStream>;

async fn fake(options: WeComOptions) -> WeComFake {
    WeComFake::start(options).await.unwrap()
}

async fn connect(fake: &WeComFake) -> Client {
    let url = fake.ws_url();
    let stream = TcpStream::connect(url.trim_start_matches("ws://"))
        .await
        .unwrap();
    tokio_tungstenite::client_async(url, stream)
        .await
        .unwrap()
        .0
}

async fn send(client: &mut Client, frame: Value) {
    client.send(Message::text(frame.to_string())).await.unwrap();
}

async fn next(client: &mut Client) -> Option<Value> {
    let limit = Duration::from_secs(10);
    match tokio::time::timeout(limit, client.next()).await.unwrap() {
        Some(Ok(Message::Text(text))) => Some(serde_json::from_str(text.as_str()).unwrap()),
        _ => None,
    }
}

async fn call(client: &mut Client, command: &str, req_id: &str, body: Value) -> i64 {
    send(
        client,
        json!({"cmd": command, "headers": {"req_id": req_id}, "body": body}),
    )
    .await;
    let answer = next(client).await.unwrap();
    assert_eq!(answer["headers"]["req_id"], req_id);
    answer["errcode"].as_i64().unwrap()
}

async fn subscribed(fake: &WeComFake) -> Client {
    let mut client = connect(fake).await;
    let body = json!({"bot_id": "bot", "secret": "secret"});
    assert_eq!(call(&mut client, "aibot_subscribe", "s", body).await, 0);
    client
}

/// Lets a person write, and returns the id of the request.
async fn asked(fake: &WeComFake, client: &mut Client) -> String {
    let req_id = fake.say("zhangsan", None, "hello").unwrap();
    let callback = next(client).await.unwrap();
    assert_eq!(callback["headers"]["req_id"], req_id);
    assert_eq!(callback["body"]["text"]["content"], "hello");
    req_id
}

fn stream(id: &str, content: &str, finish: bool) -> Value {
    json!({"msgtype": "stream", "stream": {"id": id, "finish": finish, "content": content}})
}

async fn respond(client: &mut Client, req_id: &str, body: Value) -> i64 {
    call(client, "aibot_respond_msg", req_id, body).await
}

#[tokio::test]
async fn frames_before_the_subscription_are_refused() {
    let fake = fake(WeComOptions::default()).await;
    let mut client = connect(&fake).await;
    assert_eq!(call(&mut client, "ping", "p", Value::Null).await, 846_600);
    let wrong = json!({"bot_id": "bot", "secret": "wrong"});
    assert_eq!(
        call(&mut client, "aibot_subscribe", "s", wrong).await,
        40_001
    );
    assert_eq!(next(&mut client).await, None);
    assert_eq!(fake.say("zhangsan", None, "lost"), None);
}

#[tokio::test]
async fn streams_obey_their_rules() {
    let fake = fake(WeComOptions::default()).await;
    let mut client = subscribed(&fake).await;
    let req_id = asked(&fake, &mut client).await;
    assert_eq!(
        respond(&mut client, &req_id, stream("a", "He", false)).await,
        0
    );
    assert_eq!(
        respond(&mut client, &req_id, stream("b", "x", false)).await,
        40_035
    );
    assert_eq!(
        respond(&mut client, "other", stream("a", "x", false)).await,
        846_605
    );
    let long = "x".repeat(20_481);
    assert_eq!(
        respond(&mut client, &req_id, stream("a", &long, false)).await,
        40_058
    );
    assert_eq!(
        respond(&mut client, &req_id, stream("a", "Hello", true)).await,
        0
    );
    assert_eq!(
        respond(&mut client, &req_id, stream("a", "late", true)).await,
        846_608
    );
    assert_eq!(
        fake.shown(),
        [Shown {
            chat: "zhangsan".to_owned(),
            kind: ShownKind::Stream,
            content: "Hello".to_owned(),
            finished: true,
        }]
    );
}

#[tokio::test]
async fn streams_expire_when_idle_and_when_old() {
    let fake = fake(WeComOptions::default()).await;
    let mut client = subscribed(&fake).await;
    let idle = asked(&fake, &mut client).await;
    let old = asked(&fake, &mut client).await;
    assert_eq!(
        respond(&mut client, &idle, stream("a", "1", false)).await,
        0
    );
    for minute in 0..9 {
        assert_eq!(
            respond(&mut client, &old, stream("b", &minute.to_string(), false)).await,
            0
        );
        fake.advance(Duration::from_secs(61));
    }
    assert_eq!(
        respond(&mut client, &idle, stream("a", "2", true)).await,
        846_608
    );
    fake.advance(Duration::from_secs(61));
    assert_eq!(
        respond(&mut client, &old, stream("b", "x", true)).await,
        846_608
    );
}

#[tokio::test]
async fn early_second_frame_is_refused() {
    let fake = fake(WeComOptions::default()).await;
    let mut client = subscribed(&fake).await;
    let req_id = asked(&fake, &mut client).await;
    fake.faults()
        .script("aibot_respond_msg", [Fault::Delay { ms: 200 }]);
    for content in ["1", "2"] {
        let body = stream("a", content, false);
        send(
            &mut client,
            json!({"cmd": "aibot_respond_msg", "headers": {"req_id": req_id}, "body": body}),
        )
        .await;
    }
    assert_eq!(next(&mut client).await.unwrap()["errcode"], 846_607);
    assert_eq!(next(&mut client).await.unwrap()["errcode"], 0);
}

#[tokio::test]
async fn new_connection_ends_the_old_one() {
    let fake = fake(WeComOptions::default()).await;
    let mut old = subscribed(&fake).await;
    let _new = subscribed(&fake).await;
    let event = next(&mut old).await.unwrap();
    assert_eq!(event["body"]["event"]["eventtype"], "disconnected_event");
    assert_eq!(next(&mut old).await, None);
}

#[tokio::test]
async fn conversation_takes_thirty_messages_a_minute() {
    let fake = fake(WeComOptions::default()).await;
    let mut client = subscribed(&fake).await;
    asked(&fake, &mut client).await;
    let body =
        |chat: &str| json!({"chatid": chat, "msgtype": "markdown", "markdown": {"content": "x"}});
    assert_eq!(
        call(&mut client, "aibot_send_msg", "m", body("lisi")).await,
        86_008
    );
    for _ in 0..30 {
        assert_eq!(
            call(&mut client, "aibot_send_msg", "m", body("zhangsan")).await,
            0
        );
    }
    assert_eq!(
        call(&mut client, "aibot_send_msg", "m", body("zhangsan")).await,
        45_009
    );
    fake.advance(Duration::from_secs(60));
    assert_eq!(
        call(&mut client, "aibot_send_msg", "m", body("zhangsan")).await,
        0
    );
}

#[tokio::test]
async fn new_connection_receives_messages_again_if_selected() {
    let fake = fake(WeComOptions {
        redelivery: Duration::from_secs(60),
        ..WeComOptions::default()
    })
    .await;
    assert_eq!(fake.say("ann", None, "hello"), None);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let mut client = connect(&fake).await;
        let body = json!({"bot_id": "bot", "secret": "secret"});
        send(
            &mut client,
            json!({"cmd": "aibot_subscribe", "headers": {"req_id": "s"}, "body": body}),
        )
        .await;
        let frames = [next(&mut client).await, next(&mut client).await];
        let said = frames
            .into_iter()
            .flatten()
            .find(|frame| frame["cmd"] == "aibot_msg_callback")
            .unwrap();
        ids.push(said["body"]["msgid"].clone());
    }
    assert_eq!(ids[0], ids[1]);
    fake.advance(Duration::from_secs(61));
    let mut client = subscribed(&fake).await;
    assert_eq!(call(&mut client, "ping", "p", json!({})).await, 0);
}
