//! Deterministic pi-mono backend over real HTTP that counts sessions, turns and aborts.
//!
//! The directives of [`crate::scripted_openai`] in the prompt control a turn: `slow` and `hold` stream it as events, `delay`, `error`, `hang`,
//! `cut`, `garbage` and `then say TEXT` act as there. All other turns are answered as JSON.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, post};
use axum::{Json, http::HeaderValue};
use futures_util::StreamExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::local_server::LocalServer;
use crate::scripted_openai::body::{BodyStep, Released, play};
use crate::scripted_openai::script::Script;

/// Running backend; dropping it closes the port and every connection.
#[derive(Debug)]
pub struct ScriptedPiMono {
    server: LocalServer,
    backend: Arc<Backend>,
}

/// Turn that the backend received.
#[derive(Debug, Clone)]
pub struct RecordedTurn {
    /// Id of the invocation, equal for repetitions of one attempt.
    pub invocation: String,
    /// Run.
    pub run: String,
    /// Node.
    pub node: String,
    /// Session.
    pub session: String,
    /// Body as sent.
    pub body: Value,
    /// Time at which it arrived.
    pub began: Instant,
    /// Time at which the answer was sent or its connection was closed.
    pub ended: Option<Instant>,
}

/// Abort that the backend received.
#[derive(Debug, Clone)]
pub struct RecordedAbort {
    /// Id of the invocation.
    pub invocation: String,
    /// Time at which it arrived.
    pub at: Instant,
}

#[derive(Debug)]
struct Backend {
    memory: Mutex<Memory>,
    released: watch::Sender<Released>,
}

#[derive(Debug, Default)]
struct Memory {
    created: usize,
    sessions: HashSet<String>,
    turns: Vec<RecordedTurn>,
    aborts: Vec<RecordedAbort>,
    /// Number of tries of each prompt that requests an error.
    tries: HashMap<String, u32>,
}

impl ScriptedPiMono {
    /// Starts the backend on this port of 127.0.0.1; 0 selects a free one.
    ///
    /// # Errors
    /// Returns an error if the port cannot be bound.
    pub async fn start(port: u16) -> io::Result<Self> {
        let backend = Arc::new(Backend {
            memory: Mutex::default(),
            released: watch::Sender::default(),
        });
        let router = Router::new()
            .route("/sessions", post(create_session))
            .route("/sessions/{session}", delete(delete_session))
            .route("/turns", post(take_turn))
            .route("/turns/{invocation}/abort", post(abort_turn))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&backend));
        let server = LocalServer::start(router, port).await?;
        Ok(Self { server, backend })
    }

    /// Returns the base URL of the wire.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Returns the received turns, oldest first.
    #[must_use]
    pub fn turns(&self) -> Vec<RecordedTurn> {
        self.backend.memory.lock().turns.clone()
    }

    /// Returns the received aborts, oldest first.
    #[must_use]
    pub fn aborts(&self) -> Vec<RecordedAbort> {
        self.backend.memory.lock().aborts.clone()
    }

    /// Returns the number of created sessions.
    #[must_use]
    pub fn sessions_created(&self) -> usize {
        self.backend.memory.lock().created
    }

    /// Returns the number of sessions that were created and not disposed.
    #[must_use]
    pub fn sessions_open(&self) -> usize {
        self.backend.memory.lock().sessions.len()
    }

    /// Removes all sessions, as a restart of the backend would.
    pub fn forget_sessions(&self) {
        self.backend.memory.lock().sessions.clear();
    }

    /// Releases every held answer, now and later.
    pub fn release(&self) {
        self.release_word(None);
    }

    /// Releases held answers with this word; without a word, all of them.
    pub fn release_word(&self, word: Option<&str>) {
        self.backend
            .released
            .send_modify(|released| released.release(word.map(str::to_owned), None));
    }
}

impl Backend {
    /// Records a turn and returns its index; `None` if its session does not exist.
    fn record(&self, body: &Value) -> Option<usize> {
        let field = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        let mut memory = self.memory.lock();
        if !memory.sessions.contains(&field("sessionId")) {
            return None;
        }
        memory.turns.push(RecordedTurn {
            invocation: field("invocationId"),
            run: field("runId"),
            node: field("nodeId"),
            session: field("sessionId"),
            body: body.clone(),
            began: Instant::now(),
            ended: None,
        });
        Some(memory.turns.len() - 1)
    }

    fn is_failing(&self, script: &Script, prompt: &str) -> bool {
        let Some(failure) = script.failure else {
            return false;
        };
        let mut memory = self.memory.lock();
        let tries = memory.tries.entry(prompt.to_owned()).or_default();
        *tries += 1;
        failure.times.is_none_or(|times| *tries <= times)
    }
}

/// Records the end of a turn when its answer is dropped.
struct TurnGuard {
    backend: Arc<Backend>,
    turn: usize,
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        if let Some(turn) = self.backend.memory.lock().turns.get_mut(self.turn) {
            turn.ended = Some(Instant::now());
        }
    }
}

async fn create_session(State(backend): State<Arc<Backend>>) -> Json<Value> {
    let mut memory = backend.memory.lock();
    memory.created += 1;
    let session = format!("session-{}", memory.created);
    memory.sessions.insert(session.clone());
    Json(json!({"sessionId": session}))
}

async fn delete_session(
    State(backend): State<Arc<Backend>>,
    Path(session): Path<String>,
) -> StatusCode {
    if backend.memory.lock().sessions.remove(&session) {
        StatusCode::NO_CONTENT
    } else {
        StatusCode::NOT_FOUND
    }
}

async fn abort_turn(
    State(backend): State<Arc<Backend>>,
    Path(invocation): Path<String>,
) -> StatusCode {
    backend.memory.lock().aborts.push(RecordedAbort {
        invocation,
        at: Instant::now(),
    });
    StatusCode::ACCEPTED
}

async fn take_turn(State(backend): State<Arc<Backend>>, Json(body): Json<Value>) -> Response {
    let Some(turn) = backend.record(&body) else {
        return failure(404, "no such session");
    };
    let guard = TurnGuard {
        backend: Arc::clone(&backend),
        turn,
    };
    let prompt = body["prompt"].as_str().unwrap_or_default();
    let script = match Script::parse(prompt) {
        Ok(script) => script,
        Err(error) => return failure(400, &error.to_string()),
    };
    tokio::time::sleep(script.delay).await;
    if backend.is_failing(&script, prompt)
        && let Some(scripted) = script.failure
    {
        let mut response = failure(scripted.status, "scripted error");
        if let Some(seconds) = scripted.after {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        return response;
    }
    let (kind, steps) = answer(&script);
    let steps = play(steps, backend.released.subscribe());
    let guarded = steps.map(move |step| {
        let _held_by_the_body = &guard;
        step
    });
    let mut response = Response::new(Body::from_stream(guarded));
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Returns the media type and the body of a turn's answer.
fn answer(script: &Script) -> (&'static str, Vec<BodyStep>) {
    let pieces = script.pieces();
    let result = json!({
        "finalText": pieces.concat().trim(),
        "usage": {"inputTokens": 10, "outputTokens": pieces.len(), "totalTokens": 10 + pieces.len()},
    });
    if script.hang {
        return ("application/json", vec![BodyStep::Hang]);
    }
    if script.garbage {
        let bytes = Bytes::from_static(b"{\"finalText\":");
        return ("application/json", vec![BodyStep::Send(bytes)]);
    }
    if script.slow.is_none() && script.hold.is_none() && script.cut.is_none() {
        let body = Bytes::from(result.to_string());
        return ("application/json", vec![BodyStep::Send(body)]);
    }
    let mut steps = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        if script.cut == Some(at) {
            steps.push(BodyStep::Cut);
            return ("text/event-stream", steps);
        }
        if let Some(hold) = script.hold.as_ref().filter(|hold| hold.after <= at) {
            steps.push(BodyStep::Hold {
                word: hold.word.clone(),
                sent: at,
            });
        }
        steps.push(event("delta", &json!({"deltaText": piece})));
        steps.extend(script.slow.map(|pace| BodyStep::Wait(pace.gap)));
    }
    steps.push(event("result", &result));
    ("text/event-stream", steps)
}

fn event(name: &str, data: &Value) -> BodyStep {
    BodyStep::Send(format!("event: {name}\ndata: {data}\n\n").into())
}

fn failure(status: u16, message: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(json!({"error": {"message": message}}))).into_response()
}
