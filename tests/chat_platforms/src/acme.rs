//! Fake of the made-up platform that `docs/channels.md` writes an adapter for.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::common::{Fault, Faults, Server};

/// Maximum length of a text in UTF-16 units.
const MAX_TEXT: usize = 2_000;
/// Maximum duration of a poll without events.
const HOLD: Duration = Duration::from_millis(200);
/// Name of the bot in addresses.
const BOT: &str = "bot";

#[derive(Debug, Default)]
struct AcmeWorld {
    events: Vec<Value>,
    /// Messages of the bot by key: id and text.
    messages: Vec<(String, String)>,
    polls: usize,
}

#[derive(Debug, Default)]
struct AcmeShared {
    world: Mutex<AcmeWorld>,
    faults: Faults,
    changed: Notify,
}

/// Running fake. It stops when it is dropped.
#[derive(Debug)]
pub struct AcmeFake {
    server: Server,
    shared: Arc<AcmeShared>,
}

impl AcmeFake {
    /// Starts the fake on a free loopback port.
    pub async fn start() -> std::io::Result<Self> {
        let (listener, address) = Server::bind(0).await?;
        let shared = Arc::new(AcmeShared::default());
        let routes = Router::new()
            .route("/{bot}/me", get(me))
            .route("/{bot}/events", get(events))
            .route("/{bot}/messages", post(send))
            .with_state(shared.clone());
        Ok(Self {
            server: Server::serve(listener, address, routes),
            shared,
        })
    }

    /// Returns the address of a bot; every name but `bot` is refused.
    pub fn base(&self, bot: &str) -> String {
        format!("{}/{bot}", self.server.base())
    }

    /// Returns the scripted faults of `events` and `messages`.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Writes as a person.
    pub fn say(&self, chat: &str, user: &str, text: &str) {
        let mut world = self.shared.world.lock();
        let id = format!("e{}", world.events.len());
        world
            .events
            .push(json!({"id": id, "chat": chat, "user": user, "text": text}));
        drop(world);
        self.shared.changed.notify_waiters();
    }

    /// Delivers the last event again.
    pub fn repeat_last(&self) {
        let mut world = self.shared.world.lock();
        let last = world.events.last().cloned();
        world.events.extend(last);
        drop(world);
        self.shared.changed.notify_waiters();
    }

    /// Returns the texts of the bot's messages.
    pub fn texts(&self) -> Vec<String> {
        let world = self.shared.world.lock();
        world
            .messages
            .iter()
            .map(|(_, text)| text.clone())
            .collect()
    }

    /// Returns the number of polls in progress.
    pub fn polls(&self) -> usize {
        self.shared.world.lock().polls
    }
}

/// Counts a poll while it lasts.
struct Poll(Arc<AcmeShared>);

impl Poll {
    fn begin(shared: Arc<AcmeShared>) -> Self {
        shared.world.lock().polls += 1;
        Self(shared)
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        self.0.world.lock().polls -= 1;
    }
}

/// Returns the refusal of an unknown bot or of a scripted fault, or the fault that follows the call.
fn refused(shared: &AcmeShared, bot: &str, method: &str) -> Result<Option<Fault>, Response> {
    if bot != BOT {
        return Err(StatusCode::UNAUTHORIZED.into_response());
    }
    match shared.faults.take(method) {
        Some(Fault::RateLimited { .. }) => Err(StatusCode::TOO_MANY_REQUESTS.into_response()),
        Some(Fault::Answer { status, body, .. }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            Err((status, Json(body)).into_response())
        }
        Some(Fault::Drop) => Err(broken()),
        fault => Ok(fault),
    }
}

/// Builds a response whose connection ends before the body is complete.
fn broken() -> Response {
    let parts = futures_util::stream::iter([
        Ok(Bytes::from_static(b"{")),
        Err(std::io::Error::other("scripted")),
    ]);
    Response::new(axum::body::Body::from_stream(parts))
}

async fn me(State(shared): State<Arc<AcmeShared>>, Path(bot): Path<String>) -> Response {
    match refused(&shared, &bot, "me") {
        Ok(_) => Json(json!({"id": bot})).into_response(),
        Err(refusal) => refusal,
    }
}

#[derive(Debug, Deserialize)]
struct After {
    after: usize,
}

async fn events(
    State(shared): State<Arc<AcmeShared>>,
    Path(bot): Path<String>,
    Query(After { after }): Query<After>,
) -> Response {
    if let Err(refusal) = refused(&shared, &bot, "events") {
        return refusal;
    }
    let _poll = Poll::begin(shared.clone());
    let waiting = async {
        loop {
            let changed = shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if shared.world.lock().events.len() > after {
                return;
            }
            changed.await;
        }
    };
    // A poll without events is answered too.
    let _ = tokio::time::timeout(HOLD, waiting).await;
    let world = shared.world.lock();
    let events = world.events.get(after..).unwrap_or_default();
    Json(json!({"next": world.events.len().max(after), "events": events})).into_response()
}

#[derive(Debug, Deserialize)]
struct Message {
    chat: String,
    key: String,
    text: String,
}

async fn send(
    State(shared): State<Arc<AcmeShared>>,
    Path(bot): Path<String>,
    Json(message): Json<Message>,
) -> Response {
    let fault = match refused(&shared, &bot, "messages") {
        Ok(fault) => fault,
        Err(refusal) => return refusal,
    };
    let mut world = shared.world.lock();
    let is_known = world
        .events
        .iter()
        .any(|event| event["chat"] == message.chat);
    let length = message.text.encode_utf16().count();
    if !is_known || message.text.trim().is_empty() || length > MAX_TEXT {
        return StatusCode::BAD_REQUEST.into_response();
    }
    if !world.messages.iter().any(|(key, _)| *key == message.key) {
        world.messages.push((message.key.clone(), message.text));
    }
    if fault == Some(Fault::LoseReply) {
        return broken();
    }
    Json(json!({"id": message.key})).into_response()
}
