//! Calls of the REST API by name.

use http::Method;
use serde_json::{Value, json};

use super::answers::{ApiError, HAS_THREAD};
use super::ids::id;
use super::rest::{Payload, Rest};
use crate::platform::PlatformError;

/// Start of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GatewayStart {
    /// Address of the gateway.
    pub(super) url: String,
    /// Number of sessions that may still begin.
    pub(super) remaining: Option<u64>,
    /// Milliseconds until the number is reset.
    pub(super) reset_after: u64,
}

/// Message that exists after a creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Created {
    pub(super) id: String,
    content: String,
    buttons: usize,
}

impl Created {
    fn read(answer: &Value) -> Option<Self> {
        let rows = answer["components"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let in_row = |row: &Value| row["components"].as_array().map_or(0, Vec::len);
        Some(Self {
            id: id(&answer["id"])?.to_owned(),
            content: answer["content"].as_str().unwrap_or_default().to_owned(),
            buttons: rows.iter().map(in_row).sum(),
        })
    }

    /// Reports whether the message has this text, apart from blanks around it, and this number of
    /// buttons.
    pub(super) fn shows(&self, text: &str, buttons: usize) -> bool {
        self.content.trim() == text.trim() && self.buttons == buttons
    }
}

impl Rest {
    /// Returns the bot's user.
    pub(super) async fn me(&self) -> Result<Value, ApiError> {
        self.call(Method::GET, &["users", "@me"], Payload::None)
            .await
    }

    /// Returns the bot's application.
    pub(super) async fn application(&self) -> Result<Value, ApiError> {
        let segments = ["oauth2", "applications", "@me"];
        self.call(Method::GET, &segments, Payload::None).await
    }

    /// Returns the address of the gateway and the limit of sessions.
    pub(super) async fn gateway(&self) -> Result<GatewayStart, ApiError> {
        let answer = self
            .call(Method::GET, &["gateway", "bot"], Payload::None)
            .await?;
        let limit = &answer["session_start_limit"];
        Ok(GatewayStart {
            url: answer["url"].as_str().unwrap_or_default().to_owned(),
            remaining: limit["remaining"].as_u64(),
            reset_after: limit["reset_after"].as_u64().unwrap_or_default(),
        })
    }

    /// Returns a channel.
    pub(super) async fn channel(&self, channel: &str) -> Result<Value, ApiError> {
        self.call(Method::GET, &["channels", channel], Payload::None)
            .await
    }

    /// Creates a message, or returns the one that was created under the same nonce.
    pub(super) async fn create(&self, channel: &str, body: Payload) -> Result<Created, ApiError> {
        let segments = ["channels", channel, "messages"];
        let answer = self.call(Method::POST, &segments, body).await?;
        Created::read(&answer).ok_or_else(|| {
            ApiError::Failed(PlatformError::Unavailable(
                "the answer of Discord contains no message id".to_owned(),
            ))
        })
    }

    /// Edits a message.
    pub(super) async fn edit(
        &self,
        channel: &str,
        message: &str,
        body: Value,
    ) -> Result<(), ApiError> {
        let segments = ["channels", channel, "messages", message];
        self.call(Method::PATCH, &segments, Payload::Json(body))
            .await
            .map(drop)
    }

    /// Returns up to `limit` messages: the oldest ones after an id, or the newest ones.
    pub(super) async fn messages(
        &self,
        channel: &str,
        after: Option<&str>,
        limit: u8,
    ) -> Result<Vec<Value>, ApiError> {
        let limit = limit.to_string();
        let mut query = vec![("limit", limit.as_str())];
        query.extend(after.map(|after| ("after", after)));
        let segments = ["channels", channel, "messages"];
        let answer = self
            .call_with(Method::GET, &segments, &query, Payload::None)
            .await?;
        match answer {
            Value::Array(messages) => Ok(messages),
            _ => Ok(Vec::new()),
        }
    }

    /// Shows that the bot types.
    pub(super) async fn typing(&self, channel: &str) -> Result<(), ApiError> {
        let segments = ["channels", channel, "typing"];
        self.call(Method::POST, &segments, Payload::Json(json!({})))
            .await
            .map(drop)
    }

    /// Creates the thread of a message. A thread that exists is a success.
    pub(super) async fn start_thread(
        &self,
        channel: &str,
        message: &str,
        name: &str,
    ) -> Result<(), ApiError> {
        let segments = ["channels", channel, "messages", message, "threads"];
        let body = Payload::Json(json!({"name": name}));
        match self.call(Method::POST, &segments, body).await {
            Ok(_) => Ok(()),
            Err(error) if error.code() == Some(HAS_THREAD) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Adds a reaction.
    pub(super) async fn react(
        &self,
        channel: &str,
        message: &str,
        emoji: &str,
    ) -> Result<(), ApiError> {
        let segments = [
            "channels",
            channel,
            "messages",
            message,
            "reactions",
            emoji,
            "@me",
        ];
        self.call(Method::PUT, &segments, Payload::None)
            .await
            .map(drop)
    }

    /// Answers an interaction.
    pub(super) async fn answer_interaction(
        &self,
        interaction: &str,
        token: &str,
        body: Value,
    ) -> Result<(), ApiError> {
        let segments = ["interactions", interaction, token, "callback"];
        self.call(Method::POST, &segments, Payload::Json(body))
            .await
            .map(drop)
    }

    /// Replaces the list of commands of an application.
    pub(super) async fn register(&self, application: &str, list: Value) -> Result<(), ApiError> {
        let segments = ["applications", application, "commands"];
        self.call(Method::PUT, &segments, Payload::Json(list))
            .await
            .map(drop)
    }

    /// Renews the address of a received file.
    pub(super) async fn refresh_url(&self, url: &str) -> Result<Option<String>, ApiError> {
        let body = Payload::Json(json!({"attachment_urls": [url]}));
        let segments = ["attachments", "refresh-urls"];
        let answer = self.call(Method::POST, &segments, body).await?;
        let renewed = answer.pointer("/refreshed_urls/0/refreshed");
        Ok(renewed.and_then(Value::as_str).map(ToOwned::to_owned))
    }
}
