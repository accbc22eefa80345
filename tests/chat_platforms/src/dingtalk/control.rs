//! Control routes for programs in other languages.

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::controls::DingTalkControls;
use super::written::PersonMessage;

/// Command to the platform.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
enum DingTalkCommand {
    /// Announces the end of all connections.
    Disconnect,
    /// Closes with a code.
    Close { code: u16 },
    /// Ends the connections without close frames.
    Drop,
    /// Stops reading and writing without closing.
    Freeze,
    /// Delivers the last message again.
    Repeat,
    /// Makes all tokens invalid.
    ExpireTokens,
    /// Removes all cards.
    ExpireCards,
}

/// Builds the routes below `/_fake/`.
pub(super) fn routes(controls: DingTalkControls) -> Router {
    Router::new()
        .route(
            "/_fake/message",
            post(
                async |State(controls): State<DingTalkControls>,
                       Json(message): Json<PersonMessage>| {
                    Json(json!({"id": controls.write(&message)}))
                },
            ),
        )
        .route(
            "/_fake/command",
            post(
                async |State(controls): State<DingTalkControls>,
                       Json(command): Json<DingTalkCommand>| {
                    match command {
                        DingTalkCommand::Disconnect => controls.disconnect(),
                        DingTalkCommand::Close { code } => controls.close(code),
                        DingTalkCommand::Drop => controls.drop_connections(),
                        DingTalkCommand::Freeze => controls.freeze(),
                        DingTalkCommand::Repeat => controls.repeat_last(),
                        DingTalkCommand::ExpireTokens => controls.expire_tokens(),
                        DingTalkCommand::ExpireCards => controls.expire_cards(),
                    }
                    StatusCode::NO_CONTENT
                },
            ),
        )
        .route(
            "/_fake/state",
            get(async |State(controls): State<DingTalkControls>| {
                Json::<Value>(json!({
                    "sent": controls.sent(), "cards": controls.cards(),
                    "acknowledged": controls.acknowledged(), "waiting": controls.waiting(),
                    "connections": controls.connections(),
                }))
            }),
        )
        .with_state(controls)
}
