//! Server that answers every call of Telegram's Bot API with one answer.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::{Json, Router};
use deerflow_channels::ChannelInspector;
use harness::clock::SystemClock;
use harness::config::AppConfig;
use harness::runtime::tasks::{TaskKind, Tasks};
use serde_json::{Value, json};

use crate::wiring::channel_operations::unconnected;

/// Running server; it ends with its tasks.
pub(super) struct TestTelegram {
    pub(super) base: String,
    _tasks: Tasks,
}

impl TestTelegram {
    pub(super) async fn answering(status: u16, answer: Value) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let answer = (StatusCode::from_u16(status).unwrap(), Json(answer));
        let router = Router::new().fallback(move || {
            let answer = answer.clone();
            async move { answer }
        });
        let tasks = Tasks::new();
        tasks.spawn(TaskKind::Service, "test telegram", async move {
            axum::serve(listener, router).await.unwrap();
        });
        Self {
            base,
            _tasks: tasks,
        }
    }

    /// Starts a server with a bot whose privacy mode is on.
    pub(super) async fn with_bot() -> Self {
        let bot = json!({"id": 7, "is_bot": true, "username": "helper", "can_read_all_group_messages": false});
        Self::answering(200, json!({"ok": true, "result": bot})).await
    }

    /// Starts a server that knows no bot.
    pub(super) async fn refusing() -> Self {
        let answer = json!({"ok": false, "error_code": 401, "description": "Unauthorized"});
        Self::answering(401, answer).await
    }
}

/// Returns the channels of a configuration.
pub(super) fn inspector(channels: Value) -> ChannelInspector {
    let mut config = AppConfig::default();
    config.other.insert("channels", channels);
    unconnected(&config, Arc::new(SystemClock)).unwrap()
}
