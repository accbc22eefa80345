//! Control routes for programs in other languages.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::state::{Outgoing, World};

/// Message of a person.
#[derive(Debug, Deserialize)]
struct Said {
    person: String,
    #[serde(default)]
    group: Option<String>,
    content: Value,
}

/// Command to the fake.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum WeComCommand {
    /// Ends the connection as if the bot had connected elsewhere.
    Displace,
    /// Ends the connection without a close frame.
    Drop,
    /// Sends a text as it is.
    Raw { text: String },
    /// Stops or continues to answer pings.
    IgnorePings { on: bool },
    /// Advances the time of the fake.
    Advance { seconds: u64 },
}

/// Builds the routes below `/_fake/`.
pub(super) fn routes(world: Arc<World>) -> Router {
    Router::new()
        .route("/_fake/say", post(say))
        .route("/_fake/do", post(command))
        .route("/_fake/file", post(offer))
        .route("/_fake/shown", get(shown))
        .with_state(world)
}

async fn say(State(world): State<Arc<World>>, Json(said): Json<Said>) -> Json<Value> {
    let req_id = world.say(&said.person, said.group.as_deref(), said.content);
    Json(json!({"req_id": req_id}))
}

async fn command(
    State(world): State<Arc<World>>,
    Json(command): Json<WeComCommand>,
) -> Json<Value> {
    let done = match command {
        WeComCommand::Displace => world.send(Outgoing::Displace),
        WeComCommand::Drop => world.send(Outgoing::Drop),
        WeComCommand::Raw { text } => world.send(Outgoing::Text(text)),
        WeComCommand::IgnorePings { on } => {
            world.state.lock().ignores_pings = on;
            true
        }
        WeComCommand::Advance { seconds } => {
            world.state.lock().ahead += Duration::from_secs(seconds);
            true
        }
    };
    Json(json!({"done": done}))
}

/// Offers the file `{"base64": ..}`.
async fn offer(State(world): State<Arc<World>>, Json(file): Json<Value>) -> Json<Value> {
    let bytes = STANDARD
        .decode(file["base64"].as_str().unwrap_or_default())
        .unwrap_or_default();
    Json(world.offer(&bytes))
}

async fn shown(State(world): State<Arc<World>>) -> Json<Value> {
    let state = world.state.lock();
    Json(json!({"shown": state.shown, "subscriptions": state.subscriptions}))
}
