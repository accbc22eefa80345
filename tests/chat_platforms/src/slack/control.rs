//! Control routes of the fake, for tests in other languages.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::links::Command;
use super::people::{disconnect, press, speak};
use super::shared::Shared;
use super::workspace::{BOT_USER, SlackMessage};

#[derive(Debug, Deserialize)]
struct Say {
    channel: String,
    user: String,
    text: String,
    #[serde(default)]
    thread_ts: Option<String>,
    #[serde(default)]
    mention: bool,
}

#[derive(Debug, Deserialize)]
struct Press {
    channel: String,
    ts: String,
    value: String,
    user: String,
}

#[derive(Debug, Deserialize)]
struct Options {
    ack_timeout_ms: Option<u64>,
    redelivery_ms: Option<Vec<u64>>,
    stream_lifetime_ms: Option<u64>,
    scopes: Option<Vec<String>>,
    unknown_methods: Option<Vec<String>>,
    rate_limits: Option<bool>,
}

/// Builds `POST /_fake/say`, `/_fake/press`, `/_fake/options` and `/_fake/connections/{action}`,
/// and `GET /_fake/messages/{channel}`. An action is `drop`, `silence`, `close`, or the reason of a
/// disconnect message.
pub(super) fn routes(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/_fake/say", post(say))
        .route("/_fake/press", post(press_button))
        .route("/_fake/options", post(options))
        .route("/_fake/messages/{channel}", get(messages))
        .route("/_fake/connections", get(connections))
        .route("/_fake/connections/{action}", post(end))
        .with_state(shared)
}

async fn say(State(shared): State<Arc<Shared>>, Json(said): Json<Say>) -> Json<Value> {
    let text = if said.mention {
        format!("<@{BOT_USER}> {}", said.text)
    } else {
        said.text
    };
    let ts = speak(
        &shared,
        &said.channel,
        &said.user,
        &text,
        said.thread_ts,
        Vec::new(),
    );
    Json(json!({"ts": ts}))
}

async fn press_button(State(shared): State<Arc<Shared>>, Json(pressed): Json<Press>) -> StatusCode {
    let Press {
        channel,
        ts,
        value,
        user,
    } = pressed;
    if press(&shared, &channel, &ts, &value, &user) {
        StatusCode::NO_CONTENT
    } else {
        StatusCode::NOT_FOUND
    }
}

async fn options(State(shared): State<Arc<Shared>>, Json(changes): Json<Options>) -> StatusCode {
    let mut options = shared.options.lock();
    if let Some(ms) = changes.ack_timeout_ms {
        options.ack_timeout = Duration::from_millis(ms);
    }
    if let Some(delays) = changes.redelivery_ms {
        options.redelivery = delays.into_iter().map(Duration::from_millis).collect();
    }
    if let Some(ms) = changes.stream_lifetime_ms {
        options.stream_lifetime = Duration::from_millis(ms);
    }
    if let Some(scopes) = changes.scopes {
        options.scopes = scopes;
    }
    if let Some(unknown) = changes.unknown_methods {
        options.unknown_methods = unknown;
    }
    if let Some(enforced) = changes.rate_limits {
        options.rate_limits = enforced;
    }
    StatusCode::NO_CONTENT
}

async fn messages(
    State(shared): State<Arc<Shared>>,
    Path(channel): Path<String>,
) -> Json<Vec<SlackMessage>> {
    let workspace = shared.workspace.lock();
    let found = workspace.channels.get(&channel);
    Json(
        found
            .map(|found| found.messages.clone())
            .unwrap_or_default(),
    )
}

async fn connections(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(json!({"open": shared.links.count()}))
}

async fn end(State(shared): State<Arc<Shared>>, Path(action): Path<String>) -> StatusCode {
    match action.as_str() {
        "drop" => shared.links.all(&Command::Abort),
        "silence" => shared.links.all(&Command::Silence),
        "close" => shared.links.all(&Command::Close(1000)),
        reason => disconnect(&shared, reason),
    }
    StatusCode::NO_CONTENT
}
