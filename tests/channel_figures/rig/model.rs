//! OpenAI-compatible model whose answers a function decides.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use deerflow_tests::local_server::LocalServer;
use futures_util::stream;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Text before the number of a question.
const MARK: &str = "question-";

/// Answer of the model to one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    /// Text.
    pub(crate) text: String,
    /// Reasoning before the text.
    pub(crate) reasoning: String,
    /// Name and arguments of a tool that is called instead.
    pub(crate) call: Option<(String, Value)>,
    /// Pieces of the text; 0 counts as 1.
    pub(crate) pieces: usize,
    /// Pause before each piece.
    pub(crate) gap: Duration,
}

type Decide = dyn Fn(&Value, u64) -> Reply + Send + Sync;

/// Running model. Dropping it closes its connections.
pub(crate) struct Model {
    server: LocalServer,
    state: Arc<ModelState>,
}

struct ModelState {
    decide: Box<Decide>,
    ended: Mutex<HashMap<u64, Instant>>,
    watched: Vec<&'static str>,
    seen: Mutex<HashSet<&'static str>>,
}

impl Model {
    /// Starts a model. `decide` gets the request and the number of its newest question.
    pub(crate) async fn start(
        decide: impl Fn(&Value, u64) -> Reply + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        Self::watching(decide, Vec::new()).await
    }

    /// Starts a model that notes which of these texts are part of a request of the agent.
    pub(crate) async fn watching(
        decide: impl Fn(&Value, u64) -> Reply + Send + Sync + 'static,
        watched: Vec<&'static str>,
    ) -> anyhow::Result<Self> {
        let state = Arc::new(ModelState {
            decide: Box::new(decide),
            ended: Mutex::default(),
            watched,
            seen: Mutex::default(),
        });
        let router = Router::new()
            .route("/v1/chat/completions", post(chat))
            .layer(DefaultBodyLimit::disable())
            .with_state(state.clone());
        let server = LocalServer::start(router, 0).await?;
        Ok(Self { server, state })
    }

    /// Returns the base address.
    pub(crate) fn base(&self) -> String {
        format!("http://{}/v1", self.server.address())
    }

    /// Returns the time at which the answer to a question was sent completely.
    pub(crate) fn ended(&self, question: u64) -> Option<Instant> {
        self.state.ended.lock().get(&question).copied()
    }

    /// Returns `true` if a watched text was part of a request of the agent.
    pub(crate) fn has_seen(&self, text: &str) -> bool {
        self.state.seen.lock().contains(text)
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Model").finish_non_exhaustive()
    }
}

/// Returns the text of a question.
pub(crate) fn asked(question: u64) -> String {
    format!("{MARK}{question}.")
}

/// Returns the number of the newest question in a request.
fn newest_question(request: &str) -> u64 {
    let digits = request.rfind(MARK).map_or("", |at| {
        let rest = &request[at + MARK.len()..];
        &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()]
    });
    digits.parse().unwrap_or_default()
}

async fn chat(State(state): State<Arc<ModelState>>, request: Bytes) -> Response {
    let text = String::from_utf8_lossy(&request);
    let question = newest_question(&text);
    let body: Value = serde_json::from_slice(&request).unwrap_or_default();
    // A prompt that asks for new facts contains those that are known.
    if !text.contains("factsToRemove") {
        let watched = state.watched.iter().copied();
        let found = watched.filter(|watched| text.contains(*watched));
        state.seen.lock().extend(found);
    }
    let reply = (state.decide)(&body, question);
    if body["stream"] != true {
        return whole(&reply);
    }
    let mut steps = vec![(Duration::ZERO, json!({"role": "assistant", "content": ""}))];
    if !reply.reasoning.is_empty() {
        steps.push((
            Duration::ZERO,
            json!({"reasoning_content": reply.reasoning}),
        ));
    }
    let finish = if let Some((name, arguments)) = &reply.call {
        let call = json!({"index": 0, "id": format!("call-{question}-{}", steps.len()), "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}});
        steps.push((Duration::ZERO, json!({"tool_calls": [call]})));
        "tool_calls"
    } else {
        let pieces = pieces(&reply.text, reply.pieces);
        steps.extend(pieces.map(|piece| (reply.gap, json!({"content": piece}))));
        "stop"
    };
    let mut chunks: Vec<(Duration, Value)> = steps
        .into_iter()
        .map(|(gap, delta)| {
            (
                gap,
                chunk(&json!([{"index": 0, "delta": delta, "finish_reason": null}])),
            )
        })
        .collect();
    chunks.push((
        Duration::ZERO,
        chunk(&json!([{"index": 0, "delta": {}, "finish_reason": finish}])),
    ));
    let events = stream::unfold(chunks.into_iter(), move |mut chunks| {
        let state = state.clone();
        async move {
            let (gap, chunk) = chunks.next()?;
            if !gap.is_zero() {
                tokio::time::sleep(gap).await;
            }
            let is_last = chunks.len() == 0;
            let mut event = format!("data: {chunk}\n\n");
            if is_last {
                event.push_str("data: [DONE]\n\n");
                state.ended.lock().insert(question, Instant::now());
            }
            Some((Ok::<_, Infallible>(event), chunks))
        }
    });
    let body = Body::from_stream(events);
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

fn chunk(choices: &Value) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000,
        "model": "figures", "choices": choices})
}

fn whole(reply: &Reply) -> Response {
    let message = json!({"role": "assistant", "content": reply.text});
    let body = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000,
        "model": "figures", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}});
    axum::Json(body).into_response()
}

/// Splits a text into about `count` pieces.
fn pieces(text: &str, count: usize) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(count.max(1)).max(1);
    let pieces: Vec<String> = characters
        .chunks(size)
        .map(|piece| piece.iter().collect())
        .collect();
    pieces.into_iter()
}
