//! Control routes of the fake below `/_fake/feishu/`.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::incoming::FeishuIncoming;
use super::line::FeishuRefusedHandshake;
use super::shared::FeishuShared;

type FeishuState = State<Arc<FeishuShared>>;

/// Press of a button.
#[derive(Debug, Deserialize)]
struct PressBody {
    message: String,
    user: String,
    value: Value,
    #[serde(default)]
    old: bool,
}

/// File of a received message.
#[derive(Debug, Deserialize)]
struct FileOfMessage {
    message: String,
    key: String,
    file_type: String,
    base64: String,
}

/// Payload of an event.
#[derive(Debug, Deserialize)]
struct RawEvent {
    id: String,
    kind: String,
    payload: String,
}

/// Changes of the fake's behaviour.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Behaviour {
    mute: Option<bool>,
    remove_scopes: Vec<String>,
    restore_scopes: Vec<String>,
    refuse_content: Vec<(String, i64)>,
    lose_messages: Vec<(String, i64)>,
    leave: Vec<String>,
    refuse_handshakes: Vec<FeishuRefusedHandshake>,
    expire_tokens: bool,
    end_streaming: bool,
    close: bool,
    cut: bool,
}

/// Builds the routes: `POST write`, `POST press`, `POST file`, `POST event`, `POST behaviour`,
/// `GET messages` and `GET status`.
pub(super) fn routes() -> Router<Arc<FeishuShared>> {
    Router::new()
        .route("/_fake/feishu/write", post(write))
        .route("/_fake/feishu/press", post(press))
        .route("/_fake/feishu/file", post(file))
        .route("/_fake/feishu/event", post(event))
        .route("/_fake/feishu/behaviour", post(behaviour))
        .route("/_fake/feishu/messages", get(messages))
        .route("/_fake/feishu/status", get(status))
}

async fn write(State(shared): FeishuState, Json(incoming): Json<FeishuIncoming>) -> Json<Value> {
    Json(json!({"message_id": shared.write(incoming, true)}))
}

async fn press(State(shared): FeishuState, Json(press): Json<PressBody>) -> StatusCode {
    shared.press(&press.message, &press.user, &press.value, !press.old);
    StatusCode::NO_CONTENT
}

async fn file(State(shared): FeishuState, Json(file): Json<FileOfMessage>) -> StatusCode {
    let Ok(bytes) = STANDARD.decode(&file.base64) else {
        return StatusCode::BAD_REQUEST;
    };
    shared.add_file(&file.message, &file.key, &file.file_type, bytes.into());
    StatusCode::NO_CONTENT
}

async fn event(State(shared): FeishuState, Json(event): Json<RawEvent>) -> StatusCode {
    shared.push(event.id, &event.kind, event.payload.into_bytes());
    StatusCode::NO_CONTENT
}

async fn behaviour(State(shared): FeishuState, Json(change): Json<Behaviour>) -> StatusCode {
    {
        let mut world = shared.world.lock();
        world.missing_scopes.extend(change.remove_scopes);
        for scope in &change.restore_scopes {
            world.missing_scopes.remove(scope);
        }
        world.refused_content.extend(change.refuse_content);
        for (id, code) in change.lose_messages {
            if let Some(message) = world.messages.get_mut(&id) {
                message.gone = Some(code);
            }
        }
        world.left.extend(change.leave);
        if change.expire_tokens {
            world.tokens.clear();
        }
        if change.end_streaming {
            for card in world.cards.values_mut() {
                card.streaming = false;
            }
        }
    }
    {
        let mut line = shared.line.lock();
        if let Some(mute) = change.mute {
            line.mute = mute;
        }
        line.refusals.extend(change.refuse_handshakes);
    }
    if change.close || change.cut {
        shared.end(change.cut);
    }
    StatusCode::NO_CONTENT
}

async fn messages(State(shared): FeishuState) -> Json<Value> {
    let messages: Vec<Value> = shared
        .messages()
        .iter()
        .map(|message| {
            let visible = shared.world.lock().visible(&message.message_id);
            json!({"message": message, "visible": visible})
        })
        .collect();
    Json(json!(messages))
}

async fn status(State(shared): FeishuState) -> Json<Value> {
    Json(shared.status())
}
