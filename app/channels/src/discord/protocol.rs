//! Frames of the gateway.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::cursor::Session;
use crate::platform::{MAX_NESTING, PlatformError, nesting};

/// Intents: guilds, messages in guilds, direct messages, content of messages.
const INTENTS: u64 = (1 << 0) | (1 << 9) | (1 << 12) | (1 << 15);

/// Event of the gateway.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dispatch {
    /// Sequence number.
    pub(super) seq: u64,
    /// Kind.
    pub(super) kind: String,
    /// Data; null if the kind is of no interest.
    pub(super) data: Value,
}

/// Received frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Received {
    /// Greeting, with the interval of heartbeats in milliseconds.
    Hello(u64),
    /// Acknowledgement of a heartbeat.
    Acknowledged,
    /// Request for a heartbeat.
    HeartbeatRequest,
    /// Request for a new connection that resumes.
    Reconnect,
    /// The session is invalid; `true` if it can be resumed.
    Invalid(bool),
    /// Event.
    Event(Dispatch),
    /// Anything else.
    Other,
}

/// Consequence of the end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// The session is resumed.
    Resume,
    /// A new session begins.
    Identify,
    /// The listener ends.
    Fail(PlatformError),
}

/// Kinds of events whose data is used.
fn is_of_interest(kind: &str) -> bool {
    kind.starts_with("CHANNEL_")
        || kind.starts_with("THREAD_")
        || matches!(
            kind,
            "READY" | "RESUMED" | "MESSAGE_CREATE" | "INTERACTION_CREATE" | "GUILD_CREATE"
        )
}

/// Decodes a frame.
///
/// # Errors
/// Words for the log.
pub(super) fn decode(text: &str) -> Result<Received, &'static str> {
    let mut frame: Value = serde_json::from_str(text).map_err(|_| "not JSON")?;
    let data = frame.get_mut("d").map(Value::take).unwrap_or_default();
    match frame["op"].as_u64() {
        Some(0) => {
            let seq = frame["s"].as_u64().ok_or("an event without number")?;
            let kind = frame["t"].as_str().unwrap_or_default().to_owned();
            let is_used = is_of_interest(&kind) && nesting(text.as_bytes()) <= MAX_NESTING;
            let data = if is_used { data } else { Value::Null };
            Ok(Received::Event(Dispatch { seq, kind, data }))
        }
        Some(1) => Ok(Received::HeartbeatRequest),
        Some(7) => Ok(Received::Reconnect),
        Some(9) => Ok(Received::Invalid(data == json!(true))),
        Some(10) => match data["heartbeat_interval"].as_f64() {
            Some(interval) if interval >= 0.0 => Ok(Received::Hello(interval as u64)),
            _ => Err("a greeting without interval"),
        },
        Some(11) => Ok(Received::Acknowledged),
        _ => Ok(Received::Other),
    }
}

/// Builds a heartbeat with the number of the last received event.
pub(super) fn heartbeat(seq: Option<u64>) -> String {
    json!({"op": 1, "d": seq}).to_string()
}

/// Builds the frame that begins a session.
pub(super) fn identify(token: &SecretString) -> String {
    json!({
        "op": 2,
        "d": {
            "token": token.expose_secret(),
            "intents": INTENTS,
            "properties": {
                "os": std::env::consts::OS, "browser": "deerflow", "device": "deerflow",
            },
        },
    })
    .to_string()
}

/// Builds the frame that resumes a session.
pub(super) fn resume(token: &SecretString, session: &Session) -> String {
    json!({
        "op": 6,
        "d": {
            "token": token.expose_secret(),
            "session_id": session.session_id,
            "seq": session.seq,
        },
    })
    .to_string()
}

/// Decides what follows the close of a connection by the platform.
pub(super) fn after_close(code: Option<u16>, reason: &str) -> Next {
    let rejected = |words: &str| Next::Fail(PlatformError::Rejected(words.to_owned()));
    match code {
        Some(4004) => rejected("Discord refused the bot token, enter the current token of the bot"),
        Some(4010 | 4011) => rejected(
            "the bot is in too many servers for one connection (sharding is required), which is \
             not supported",
        ),
        Some(4012) => rejected("Discord does not support this version of its gateway any more"),
        Some(4013) => rejected("Discord does not know an intent that the bot asked for"),
        Some(4014) => rejected(
            "the intent of message contents is off: switch on Message Content Intent at \
             https://discord.com/developers/applications, your application, Bot, Privileged \
             Gateway Intents, and restart the channel",
        ),
        Some(4003 | 4007 | 4009) => Next::Identify,
        Some(4008) => Next::Fail(PlatformError::Unavailable(
            "Discord closed the connection because of too many frames".to_owned(),
        )),
        _ => {
            tracing::debug!(code, reason, "discord closed the connection");
            Next::Resume
        }
    }
}

#[cfg(test)]
#[path = "protocol_tests.rs"]
mod tests;
