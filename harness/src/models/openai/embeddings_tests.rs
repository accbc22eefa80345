//! The adapter against a real local server that speaks raw HTTP.

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::*;
use crate::clock::SystemClock;
use crate::models::http::test_server::{read_request, until_gone};
use crate::runtime::tasks::{TaskKind, Tasks};

/// What the server does with its requests, one after the other; it answers well when nothing is left.
type Script = Vec<Turn>;

#[derive(Clone)]
enum Turn {
    /// Status and body.
    Say(u16, Value),
    /// Nothing, for ever.
    Hang,
}

/// What the server tells of its requests.
#[derive(Default)]
struct Heard {
    /// Their heads and bodies.
    asked: Mutex<Vec<(String, Value)>>,
    /// A mark for each that is left without an answer.
    hanging: Notify,
}

/// A server whose vectors are the length of the text and its first byte, in reverse order.
async fn server(script: Script) -> (String, Arc<Heard>, Tasks) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1/", listener.local_addr().unwrap());
    let (heard, tasks) = (Arc::new(Heard::default()), Tasks::new());
    let told = heard.clone();
    tasks.spawn(TaskKind::Service, "test server", async move {
        let mut script = script.into_iter();
        while let Ok((socket, _)) = listener.accept().await {
            serve(socket, script.next(), &told).await;
        }
    });
    (address, heard, tasks)
}

async fn serve(mut socket: TcpStream, turn: Option<Turn>, heard: &Heard) {
    let Some((head, body)) = read_request(&mut socket).await else {
        return;
    };
    heard.asked.lock().push((head, body.clone()));
    let (status, answer) = match turn {
        Some(Turn::Hang) => {
            heard.hanging.notify_one();
            until_gone(&mut socket).await;
            return;
        }
        Some(Turn::Say(status, answer)) => (status, answer),
        None => (200, good(&body)),
    };
    let answer = answer.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}",
        answer.len()
    );
    let _ = socket
        .write_all(format!("{head}\r\n\r\n{answer}").as_bytes())
        .await;
}

fn good(body: &Value) -> Value {
    let texts = body["input"].as_array().cloned().unwrap_or_default();
    let rows = texts.iter().enumerate().rev().map(|(index, text)| {
        let text = text.as_str().unwrap_or_default();
        json!({ "index": index, "embedding": [text.len(), text.bytes().next().unwrap_or_default()] })
    });
    json!({ "data": rows.collect::<Vec<_>>() })
}

/// Longer than any test works: calls are given up only where `outcome` moves the clock.
const LIMIT: Duration = Duration::from_secs(60);

fn entry(address: &str) -> EmbeddingEntry {
    EmbeddingEntry {
        model: "small".to_owned(),
        base_url: address.to_owned(),
        api_key: Some("sk-canary".to_owned().into()),
        dims: 2,
        timeout: LIMIT,
        retry: RetryPolicy {
            base: Duration::from_millis(1),
            cap: Duration::from_millis(2),
            ..RetryPolicy::default()
        },
    }
}

fn embedder(entry: EmbeddingEntry) -> OpenAiEmbedder {
    OpenAiEmbedder::new(entry, SharedHttp::new().unwrap(), Arc::new(SystemClock)).unwrap()
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|n| "b".repeat(n + 1)).collect()
}

/// What came of two texts, and how often the server was asked. The limit of a call passes as soon as the server leaves it hanging.
async fn outcome(script: Script) -> (Result<Vec<Vec<f32>>, ModelError>, usize) {
    let (address, heard, _tasks) = server(script).await;
    let (embedder, texts) = (embedder(entry(&address)), texts(2));
    let mut embedding = embedder.embed(&texts);
    let embedded = loop {
        tokio::select! {
            embedded = &mut embedding => break embedded,
            () = heard.hanging.notified() => {
                tokio::time::pause();
                tokio::time::advance(LIMIT + Duration::from_secs(1)).await;
                tokio::time::resume();
            }
        }
    };
    let times = heard.asked.lock().len();
    (embedded, times)
}

fn refusal(status: u16, message: &str) -> Turn {
    Turn::Say(
        status,
        json!({ "error": { "message": message, "code": null } }),
    )
}

#[tokio::test]
async fn every_text_gets_its_vector_in_batches() {
    let (address, heard, _tasks) = server(vec![]).await;
    let vectors = embedder(entry(&address))
        .embed(&texts(BATCH + 3))
        .await
        .unwrap();
    let expected: Vec<Vec<f32>> = (0..BATCH + 3)
        .map(|n| vec![(n + 1) as f32, f32::from(b'b')])
        .collect();
    assert_eq!(vectors, expected);
    let asked = heard.asked.lock();
    let sizes: Vec<usize> = asked
        .iter()
        .map(|(_, body)| body["input"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [BATCH, 3]);
    let (head, body) = &asked[0];
    assert!(
        head.starts_with("post /v1/embeddings ")
            && head.contains("authorization: bearer sk-canary"),
        "{head}"
    );
    assert_eq!(body["model"], "small");
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_what_cannot_is_not() {
    let (embedded, times) = outcome(vec![Turn::Hang, refusal(503, "overloaded")]).await;
    assert_eq!(
        (
            embedded
                .map(|vectors| vectors.len())
                .map_err(|error| error.kind),
            times
        ),
        (Ok(2), 3)
    );
    let table = [
        (refusal(401, "wrong key sk-canary"), ModelErrorKind::Auth),
        (
            refusal(400, "this input is too long"),
            ModelErrorKind::BadRequest,
        ),
        (
            Turn::Say(
                200,
                json!({ "data": [{ "index": 0, "embedding": [1, 2, 3] }, { "index": 1, "embedding": [1, 2, 3] }] }),
            ),
            ModelErrorKind::Config,
        ),
        (
            Turn::Say(200, json!({ "choices": [] })),
            ModelErrorKind::Config,
        ),
    ];
    for (turn, kind) in table {
        let (embedded, times) = outcome(vec![turn]).await;
        let error = embedded.unwrap_err();
        assert_eq!((error.kind, times), (kind, 1), "{error}");
        assert!(!error.to_string().contains("canary"), "{error}");
    }
    let twice = json!({ "data": [{ "index": 0, "embedding": [1, 2] }, { "index": 0, "embedding": [1, 2] }] });
    let (embedded, times) = outcome(vec![Turn::Say(200, twice); 3]).await;
    assert_eq!(
        (embedded.unwrap_err().kind, times),
        (ModelErrorKind::Transient, 3)
    );
}

#[test]
fn an_address_that_is_none_is_refused() {
    for address in ["", "ftp://x/v1", "nothing"] {
        assert!(
            OpenAiEmbedder::new(
                entry(address),
                SharedHttp::new().unwrap(),
                Arc::new(SystemClock)
            )
            .is_err(),
            "{address}"
        );
    }
}
