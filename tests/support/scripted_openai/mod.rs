//! Deterministic OpenAI-compatible model over real HTTP, controlled by the newest user message.
//!
//! Directives in double square brackets in that message control the "model", and nothing else does: the number of
//! assistant turns after the message is the index of the next step, so retries and concurrent callers do not
//! disturb each other (the one exception is `[[error N times=K]]`).
//!
//! | directive | effect |
//! |---|---|
//! | `[[tool:NAME {json}]]` | one turn with one tool call |
//! | `[[tools:[{"name":N,"args":{}}]]]` | one turn with parallel tool calls |
//! | `[[rawtool:NAME "text"]]` | a tool call whose argument text is not JSON |
//! | `[[ghost:NAME {json}]]` | a call of a tool that was not offered |
//! | `[[frag]]` | tool-call arguments one character per chunk |
//! | `[[slow 50x20ms]]` | final text in 50 pieces, 20 ms apart |
//! | `[[hold 3]]` | the final text stops after 3 pieces until the test calls [`ScriptedOpenAi::release`] |
//! | `[[hold 3 WORD]]` | the same; `/__release?word=WORD` releases answers with this word, with `&to=5` up to 5 pieces |
//! | `[[delay 300]]` | 300 ms before the first byte of every turn |
//! | `[[think some text]]` | `reasoning_content` before the final text |
//! | `[[error 500]]`, `[[error 429 times=2]]` | HTTP error on the final turn, always or for the first 2 tries |
//! | `[[error 429 after=60]]` | the same with `Retry-After: 60`; 429 and 503 have `Retry-After: 0` otherwise |
//! | `[[cut 3]]` | the connection drops after 3 pieces of the final text |
//! | `[[hang]]` | final turn: headers, then never a byte |
//! | `[[garbage]]` | final turn: a chunk that is not JSON in the middle |
//! | `[[stop length]]` | `finish_reason` of the final turn |
//! | `[[usage 11,7]]`, `[[usage 11,7,4]]` | prompt and completion token counts, 4 of the prompt from the cache |
//! | `... then say TEXT` | the final text |
//!
//! Directives for tools count only if the request offers the tools (ghosts: if it offers any), so auxiliary prompts that quote the user get a text answer.
//! Messages that consist of `<tag>...</tag>` blocks only are skipped.
//! An API key that begins with `refused-` and a status, such as `refused-401`, is answered with that status.
//! `/__log` lists received requests, `/__reset` clears the list, `/__release` without a word is [`ScriptedOpenAi::release`].

pub(crate) mod body;
mod directive;
mod history;
mod request;
pub mod script;
mod turn;

use std::{
    collections::{HashMap, VecDeque},
    io,
    net::SocketAddr,
    sync::Arc,
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Query, State},
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use self::{body::Released, request::ChatRequest, script::Script, turn::Turn};
use crate::local_server::LocalServer;

pub use self::{
    history::{HistoryError, check as check_history},
    request::RecordedRequest,
};

/// Maximum number of retained requests.
const LOG_LENGTH: usize = 5000;

/// Options of the model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Port on 127.0.0.1; 0 selects a free one.
    pub port: u16,
    /// Answers 400 to every history whose tool calls and results are not paired.
    pub strict: bool,
}

/// Running scripted model; dropping it closes the port and every connection.
#[derive(Debug)]
pub struct ScriptedOpenAi {
    /// Value for a model entry's `base_url`, `/v1` included.
    pub base_url: String,
    server: LocalServer,
    model: Arc<Model>,
}

impl ScriptedOpenAi {
    /// Starts the model.
    ///
    /// # Errors
    /// Returns an error if the port cannot be bound.
    pub async fn start(options: Options) -> io::Result<Self> {
        let model = Arc::new(Model {
            strict: options.strict,
            memory: Mutex::default(),
            released: watch::Sender::default(),
        });
        let server = LocalServer::start(router(Arc::clone(&model)), options.port).await?;
        Ok(Self {
            base_url: format!("http://{}/v1", server.address()),
            server,
            model,
        })
    }

    /// Returns the listener's address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the received requests, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.model.memory.lock().log.iter().cloned().collect()
    }

    /// Releases every held answer, now and later.
    pub fn release(&self) {
        self.model.release(None, None);
    }

    /// Returns the number of requests that strict mode rejected.
    #[must_use]
    pub fn rejections(&self) -> usize {
        self.model.memory.lock().rejections
    }
}

#[derive(Debug)]
struct Model {
    strict: bool,
    memory: Mutex<Memory>,
    released: watch::Sender<Released>,
}

#[derive(Debug, Default)]
struct Memory {
    log: VecDeque<RecordedRequest>,
    rejections: usize,
    /// Number of tries of each message that requests an error.
    tries: HashMap<(String, usize), u32>,
}

impl Model {
    fn answer(&self, body: &[u8], authorization: &str) -> Turn {
        let request: ChatRequest = match serde_json::from_slice(body) {
            Ok(request) => request,
            Err(error) => return Turn::failure(400, &format!("request body: {error}")),
        };
        let script_message = request.script_message();
        let refused_key = refused_with(authorization);
        let refusal = if self.strict {
            history::check(&request.messages).err()
        } else {
            None
        };
        self.record_request(request.record(
            &script_message,
            authorization,
            refusal.as_ref().map(ToString::to_string),
        ));
        if let Some(refusal) = refusal {
            return Turn::failure(400, &refusal.to_string());
        }
        if let Some(status) = refused_key {
            return Turn::failure(status, "scripted refusal of this key");
        }
        match Script::parse(&script_message.text) {
            Ok(script) => Turn::compose(&request, &script_message, &script, || {
                let tries = self.count_try(&script_message.text, request.messages.len());
                script
                    .failure
                    .and_then(|failure| failure.times)
                    .is_none_or(|times| tries <= times)
            }),
            Err(error) => Turn::failure(400, &error.to_string()),
        }
    }

    fn record_request(&self, request: RecordedRequest) {
        let mut memory = self.memory.lock();
        memory.rejections += usize::from(request.rejected.is_some());
        if memory.log.len() == LOG_LENGTH {
            memory.log.pop_front();
        }
        memory.log.push_back(request);
    }

    fn release(&self, word: Option<String>, to: Option<usize>) {
        self.released
            .send_modify(|released| released.release(word, to));
    }

    fn count_try(&self, text: &str, length: usize) -> u32 {
        let mut memory = self.memory.lock();
        let tries = memory.tries.entry((text.to_owned(), length)).or_default();
        *tries = tries.saturating_add(1);
        *tries
    }
}

/// Returns the status that an API key requests by its name.
fn refused_with(authorization: &str) -> Option<u16> {
    let (_, named) = authorization.split_once("refused-")?;
    named
        .get(..3)?
        .parse()
        .ok()
        .filter(|status| (400..600).contains(status))
}

fn router(model: Arc<Model>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/chat/completions", post(chat))
        .route("/v1/models", get(models))
        .route("/models", get(models))
        .route("/__log", any(log))
        .route("/__reset", any(reset))
        .route("/__release", any(release))
        .route("/health", get(async || Json(json!({"ok": true}))))
        .fallback(no_route)
        .layer(DefaultBodyLimit::disable())
        .with_state(model)
}

async fn chat(State(model): State<Arc<Model>>, headers: HeaderMap, body: Bytes) -> Response {
    let authorization = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let turn = model.answer(&body, authorization);
    tokio::time::sleep(turn.delay).await;
    let mut response = Response::new(Body::from_stream(body::play(
        turn.body_steps,
        model.released.subscribe(),
    )));
    *response.status_mut() =
        StatusCode::from_u16(turn.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = if turn.events {
        "text/event-stream"
    } else {
        "application/json"
    };
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    if let Some(seconds) = turn.retry_after {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

async fn models() -> Json<Value> {
    let model = json!({"id": "scripted", "object": "model", "created": 0, "owned_by": "tests"});
    Json(json!({"object": "list", "data": [model]}))
}

async fn log(State(model): State<Arc<Model>>) -> Json<Vec<RecordedRequest>> {
    Json(model.memory.lock().log.iter().cloned().collect())
}

async fn reset(State(model): State<Arc<Model>>) -> Json<Value> {
    *model.memory.lock() = Memory::default();
    Json(json!({}))
}

#[derive(Deserialize)]
struct ReleaseQuery {
    word: Option<String>,
    to: Option<usize>,
}

async fn release(
    State(model): State<Arc<Model>>,
    Query(ReleaseQuery { word, to }): Query<ReleaseQuery>,
) -> Json<Value> {
    model.release(word, to);
    Json(json!({}))
}

async fn no_route(uri: Uri) -> Response {
    let error = json!({"error": {"message": format!("no route {}", uri.path()), "type": "invalid_request_error"}});
    (StatusCode::NOT_FOUND, Json(error)).into_response()
}

#[cfg(test)]
#[path = "scripted_openai_tests.rs"]
mod tests;
