//! Files, and the comparison of requests with those of the vendor's SDK, against the fake.

use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::wecom::WeComOptions;
use serde_json::{Value, json};

use super::test_bench::{Bench, delivery, live, text};
use crate::platform::*;

async fn bench() -> Bench {
    Bench::new(WeComOptions::default()).await
}

#[tokio::test]
async fn files_are_uploaded_in_chunks_and_sent() {
    let bench = bench().await;
    let file = |name: &str, media_type: &str, size: usize| FileBody {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        bytes: (0..size)
            .map(|index| (index % 251) as u8)
            .collect::<Vec<_>>()
            .into(),
    };
    bench
        .connected(async {
            let target = bench.asked().await;
            let mut message = text(&target, "", &Value::Null);
            message.content = Content::File {
                user_id: "u".to_owned(),
                thread_id: "t".to_owned(),
                path: "/a".to_owned(),
            };
            for body in [
                file("a.pdf", "application/pdf", 1_200_000),
                file("a.png", "image/png", 1_000),
            ] {
                let mut delivery = delivery();
                bench
                    .platform
                    .send(&message, Some(body), &mut delivery)
                    .await
                    .unwrap();
            }
            let mut retried = delivery();
            bench.fake.faults().script(
                "aibot_send_msg",
                [Fault::Answer {
                    status: 200,
                    body: json!({"errcode": -1, "errmsg": "busy"}),
                    headers: Default::default(),
                }],
            );
            let body = file("b.txt", "text/plain", 10);
            let failed = bench
                .platform
                .send(&message, Some(body.clone()), &mut retried);
            assert!(matches!(failed.await, Err(PlatformError::Unavailable(_))));
            bench
                .platform
                .send(&message, Some(body), &mut retried)
                .await
                .unwrap();
            let empty = file("c", "", 0);
            let empty = bench
                .platform
                .send(&message, Some(empty), &mut delivery())
                .await;
            assert!(matches!(empty, Err(PlatformError::Refused(_))));
        })
        .await;
    let media: Vec<String> = bench
        .fake
        .shown()
        .into_iter()
        .map(|shown| shown.content)
        .collect();
    assert_eq!(media.len(), 3);
    let (name, content) = bench.fake.uploaded(&media[0]).unwrap();
    assert_eq!((name.as_str(), content.len()), ("a.pdf", 1_200_000));
    let kinds: Vec<Value> = bench
        .fake
        .calls()
        .of("aibot_upload_media_init")
        .into_iter()
        .map(|call| call.body["type"].clone())
        .collect();
    // The file whose message failed is uploaded once.
    assert_eq!(kinds, ["file", "image", "file"]);
}

#[tokio::test]
async fn long_texts_are_sent_as_files() {
    let bench = bench().await;
    bench
        .connected(async {
            let target = bench.asked().await;
            let mut message = text(&target, "", &Value::Null);
            message.content = Content::TextFile {
                name: "answer.md".to_owned(),
                text: "long text".to_owned(),
            };
            bench.send(&message).await.unwrap();
        })
        .await;
    let media = &bench.fake.shown()[0].content;
    let expected = ("answer.md".to_owned(), b"long text".to_vec());
    assert_eq!(bench.fake.uploaded(media), Some(expected));
}

/// Bodies that the vendor's SDK sent for the same steps.
const RECORDED: &[(&str, &str)] = &[
    (
        "aibot_subscribe",
        r#"{"bot_id": "bot", "secret": "secret"}"#,
    ),
    (
        "aibot_respond_msg",
        r#"{"msgtype": "stream", "stream": {"id": "stream-1", "finish": false, "content": "Hel"}}"#,
    ),
    (
        "aibot_respond_msg",
        r#"{"msgtype": "stream", "stream": {"id": "stream-1", "finish": true, "content": "Hello"}}"#,
    ),
    (
        "aibot_send_msg",
        r#"{"chatid": "zhangsan", "msgtype": "markdown", "markdown": {"content": "**later**"}}"#,
    ),
    (
        "aibot_upload_media_init",
        r#"{"type": "file", "filename": "a.txt", "total_size": 10, "total_chunks": 1, "md5": "336311a016184326ddbdd61edd4eeb52"}"#,
    ),
    (
        "aibot_upload_media_chunk",
        r#"{"upload_id": "UP1", "chunk_index": 0, "base64_data": "eHh4eHh4eHh4eA=="}"#,
    ),
    ("aibot_upload_media_finish", r#"{"upload_id": "UP1"}"#),
];

#[tokio::test]
async fn requests_equal_those_of_the_vendors_sdk() {
    let bench = bench().await;
    let mut stream = String::new();
    bench
        .connected(async {
            let target = bench.asked().await;
            let mut reply = live(&target);
            stream = reply.key.simple().to_string();
            bench.platform.update_live(&mut reply, "Hel").await.unwrap();
            bench
                .send(&text(&target, "Hello", &reply.state))
                .await
                .unwrap();
            bench
                .send(&text(&target, "**later**", &Value::Null))
                .await
                .unwrap();
            let mut message = text(&target, "", &Value::Null);
            message.content = Content::TextFile {
                name: "a.txt".to_owned(),
                text: "x".repeat(10),
            };
            bench.send(&message).await.unwrap();
        })
        .await;
    let calls = bench.fake.calls().all();
    for (call, (method, body)) in calls.iter().zip(RECORDED) {
        let mut sent = call.body.clone();
        sent.as_object_mut().unwrap().remove("req_id");
        let expected = body.replace("stream-1", &stream);
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!((call.method.as_str(), sent), (*method, expected));
    }
    assert_eq!(calls.len(), RECORDED.len() + 1);
}
