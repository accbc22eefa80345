//! Control routes for programs in other languages.

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::controls::DiscordControls;
use super::rooms::PersonMessage;

/// Press of a button.
#[derive(Debug, Deserialize)]
struct Pressed {
    message: u64,
    custom_id: String,
    person: u64,
}

/// Command to all connections.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum Command {
    /// Sends op 7.
    Reconnect,
    /// Sends op 9.
    Invalidate { resumable: bool },
    /// Closes with a code.
    Close { code: u16 },
    /// Ends the connections without close frames.
    Drop,
    /// Stops or continues sending.
    Silence { on: bool },
    /// Sends the last message event once more.
    Repeat,
}

/// Builds the routes below `/_fake/`.
pub(super) fn routes(controls: DiscordControls) -> Router {
    Router::new()
        .route(
            "/_fake/message",
            post(
                async |State(controls): State<DiscordControls>,
                       Json(message): Json<PersonMessage>| {
                    Json(json!({"id": controls.write(&message).to_string()}))
                },
            ),
        )
        .route(
            "/_fake/press",
            post(
                async |State(controls): State<DiscordControls>, Json(press): Json<Pressed>| {
                    let id = controls.press(press.message, &press.custom_id, press.person);
                    Json(json!({"id": id.map(|id| id.to_string())}))
                },
            ),
        )
        .route(
            "/_fake/command",
            post(
                async |State(controls): State<DiscordControls>, Json(command): Json<Command>| {
                    match command {
                        Command::Reconnect => controls.reconnect(),
                        Command::Invalidate { resumable } => controls.invalidate(resumable),
                        Command::Close { code } => controls.close(code),
                        Command::Drop => controls.drop_connections(),
                        Command::Silence { on } => controls.silence(on),
                        Command::Repeat => controls.repeat_last(),
                    }
                    StatusCode::NO_CONTENT
                },
            ),
        )
        .route(
            "/_fake/messages",
            get(async |State(controls): State<DiscordControls>| {
                Json::<Vec<Value>>(controls.messages())
            }),
        )
        .route(
            "/_fake/violations",
            get(async |State(controls): State<DiscordControls>| {
                Json::<Vec<String>>(controls.violations())
            }),
        )
        .with_state(controls)
}
