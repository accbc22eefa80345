//! The adapter against a local server that writes raw HTTP.

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::*;
use crate::http::test_server::{read_request, wait_for_disconnect};
use deerflow_core::clock::SystemClock;
use deerflow_core::tasks::{TaskKind, Tasks};

/// Responses of the server in their order. After the last one it sends valid vectors.
type Script = Vec<Turn>;

#[derive(Clone)]
enum Turn {
    /// Sends this status and body.
    Say(u16, Value),
    /// Sends no response and keeps the connection open.
    Hang,
}

/// Log of the server.
#[derive(Default)]
struct ServerLog {
    /// Heads and bodies of the requests.
    requests: Mutex<Vec<(String, Value)>>,
    /// Notified for each request that gets no response.
    hanging: Notify,
}

/// Starts a server whose vectors are the length of the text and its first byte, in reverse order.
async fn server(script: Script) -> (String, Arc<ServerLog>, Tasks) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1/", listener.local_addr().unwrap());
    let (server_log, tasks) = (Arc::new(ServerLog::default()), Tasks::new());
    let log = server_log.clone();
    tasks.spawn(TaskKind::Service, "test server", async move {
        let mut script = script.into_iter();
        while let Ok((socket, _)) = listener.accept().await {
            serve(socket, script.next(), &log).await;
        }
    });
    (address, server_log, tasks)
}

async fn serve(mut socket: TcpStream, turn: Option<Turn>, server_log: &ServerLog) {
    let Some((head, body)) = read_request(&mut socket).await else {
        return;
    };
    server_log.requests.lock().push((head, body.clone()));
    let (status, answer) = match turn {
        Some(Turn::Hang) => {
            server_log.hanging.notify_one();
            wait_for_disconnect(&mut socket).await;
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

/// Timeout of a call. It exceeds the duration of any test, so a call times out only where `outcome`
/// advances the clock.
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

/// Embeds two texts. Returns the result and the number of requests. A call times out as soon as the
/// server hangs.
async fn outcome(script: Script) -> (Result<Vec<Vec<f32>>, ModelError>, usize) {
    let (address, server_log, _tasks) = server(script).await;
    let (embedder, texts) = (embedder(entry(&address)), texts(2));
    let mut embedding = embedder.embed(&texts);
    let embedded = loop {
        tokio::select! {
            embedded = &mut embedding => break embedded,
            () = server_log.hanging.notified() => {
                tokio::time::pause();
                tokio::time::advance(LIMIT + Duration::from_secs(1)).await;
                tokio::time::resume();
            }
        }
    };
    let times = server_log.requests.lock().len();
    (embedded, times)
}

fn error_reply(status: u16, message: &str) -> Turn {
    Turn::Say(
        status,
        json!({ "error": { "message": message, "code": null } }),
    )
}

#[tokio::test]
async fn every_text_gets_its_vector_in_batches() {
    let (address, server_log, _tasks) = server(vec![]).await;
    let vectors = embedder(entry(&address))
        .embed(&texts(MAX_BATCH_TEXTS + 3))
        .await
        .unwrap();
    let expected: Vec<Vec<f32>> = (0..MAX_BATCH_TEXTS + 3)
        .map(|n| vec![(n + 1) as f32, f32::from(b'b')])
        .collect();
    assert_eq!(vectors, expected);
    let requests = server_log.requests.lock();
    let sizes: Vec<usize> = requests
        .iter()
        .map(|(_, body)| body["input"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [MAX_BATCH_TEXTS, 3]);
    let (head, body) = &requests[0];
    assert!(
        head.starts_with("post /v1/embeddings ")
            && head.contains("authorization: bearer sk-canary"),
        "{head}"
    );
    assert_eq!(body["model"], "small");
}

#[tokio::test]
async fn transient_errors_are_retried_and_others_are_not() {
    let (embedded, times) = outcome(vec![Turn::Hang, error_reply(503, "overloaded")]).await;
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
        (
            error_reply(401, "wrong key sk-canary"),
            ModelErrorKind::Auth,
        ),
        (
            error_reply(400, "this input is too long"),
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
fn invalid_address_is_rejected() {
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
