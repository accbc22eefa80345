//! Control routes for what people do, for tests that run in another process.

use axum::extract::{Query, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::people::{People, Post};
use super::world::{Posted, PostedFile};

/// Body of `say`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Say {
    chat: i64,
    from: i64,
    #[serde(default)]
    text: String,
    topic: Option<i64>,
    reply_to: Option<i64>,
    album: Option<String>,
    file: Option<SaidFile>,
    #[serde(default)]
    other_bot: bool,
}

/// File of `say`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidFile {
    /// `true` for a photo.
    #[serde(default)]
    photo: bool,
    #[serde(default)]
    name: String,
    #[serde(default)]
    media_type: String,
    base64: String,
    size: Option<u64>,
}

/// Body of `press`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PressBody {
    chat: i64,
    message: i64,
    from: i64,
    data: String,
}

/// Body or query that names a chat.
#[derive(Debug, Deserialize)]
struct ChatBody {
    chat: i64,
    #[serde(default)]
    to: i64,
    #[serde(default)]
    blocked: bool,
}

/// Builds `POST /_fake/say`, `press`, `stop`, `topic`, `migrate`, `block` and `raw`, and
/// `GET /_fake/messages?chat=`, `draft?chat=` and `state`.
pub(super) fn people_routes(people: People) -> Router {
    let say = async |State(people): State<People>, Json(body): Json<Say>| match body.post() {
        Some((chat, from, post)) => {
            let id = people.post(chat, from, post);
            (StatusCode::OK, Json(json!({"message_id": id})))
        }
        None => (
            StatusCode::BAD_REQUEST,
            Json(json!({"detail": "the file is not valid base64"})),
        ),
    };
    let press = async |State(people): State<People>, Json(body): Json<PressBody>| {
        let id = people.press_button(body.chat, body.message, body.from, &body.data);
        Json(json!({"press": id}))
    };
    let stop = async |State(people): State<People>, Json(body): Json<ChatBody>| {
        Json(json!({"stopped": people.stop_draft(body.chat)}))
    };
    let topic = async |State(people): State<People>, Json(body): Json<ChatBody>| {
        Json(json!({"topic": people.add_topic(body.chat)}))
    };
    let migrate = async |State(people): State<People>, Json(body): Json<ChatBody>| {
        people.migrate(body.chat, body.to);
        StatusCode::NO_CONTENT
    };
    let block = async |State(people): State<People>, Json(body): Json<ChatBody>| {
        people.set_blocked(body.chat, body.blocked);
        StatusCode::NO_CONTENT
    };
    let raw = async |State(people): State<People>, Json(body): Json<Value>| {
        people.raw_update(body);
        StatusCode::NO_CONTENT
    };
    let messages = async |State(people): State<People>, Query(query): Query<ChatBody>| {
        Json::<Vec<Posted>>(people.messages(query.chat))
    };
    let draft =
        async |State(people): State<People>, Query(query): Query<ChatBody>| {
            let draft = people.draft(query.chat);
            Json(draft.map(
                |draft| json!({"id": draft.id, "text": draft.text, "can_stop": draft.can_stop}),
            ))
        };
    let state = async |State(people): State<People>| {
        Json(json!({
            "unconfirmed": people.unconfirmed(),
            "early_calls": people.early_calls(),
            "commands": people.commands(),
        }))
    };
    Router::new()
        .route("/_fake/say", post(say))
        .route("/_fake/press", post(press))
        .route("/_fake/stop", post(stop))
        .route("/_fake/topic", post(topic))
        .route("/_fake/migrate", post(migrate))
        .route("/_fake/block", post(block))
        .route("/_fake/raw", post(raw))
        .route("/_fake/messages", get(messages))
        .route("/_fake/draft", get(draft))
        .route("/_fake/state", get(state))
        .with_state(people)
}

impl Say {
    /// Returns the message, or `None` if the content of its file is invalid.
    fn post(self) -> Option<(i64, i64, Post)> {
        let file = match self.file {
            Some(file) => Some(file.posted()?),
            None => None,
        };
        let post = Post {
            text: self.text,
            topic: self.topic,
            reply_to: self.reply_to,
            album: self.album,
            file,
            by_other_bot: self.other_bot,
        };
        Some((self.chat, self.from, post))
    }
}

impl SaidFile {
    fn posted(self) -> Option<PostedFile> {
        let bytes = STANDARD.decode(&self.base64).ok()?;
        let file = if self.photo {
            PostedFile::photo(bytes)
        } else {
            PostedFile::document(&self.name, &self.media_type, bytes)
        };
        Some(match self.size {
            Some(size) => file.with_size(size),
            None => file,
        })
    }
}
