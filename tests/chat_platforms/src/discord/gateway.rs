//! The gateway.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::rooms::{BOT, GUILD, user};
use super::sessions::{MESSAGE_CONTENT, Out};
use super::shared::DiscordShared;
use crate::common::{Socket, Window, accept_socket};

/// Privileged intents that are never switched on: members and presences.
const NEVER_PERMITTED: u64 = (1 << 1) | (1 << 8);
/// Maximum size of a received frame in bytes.
const MAX_FRAME: usize = 4096;

/// Result of one received frame.
enum Outcome {
    Continue,
    Close(u16),
}

/// Connection of a client.
struct Connection {
    shared: Arc<DiscordShared>,
    number: u64,
    is_authorized: bool,
    frames: Window,
}

/// Accepts a connection of the gateway.
pub(super) async fn connect(
    State(shared): State<Arc<DiscordShared>>,
    request: Request,
) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    if !query.contains("v=10") || !query.contains("encoding=json") {
        shared.violation(format!("gateway query {query}"));
    }
    accept_socket(request, move |socket| serve(shared, socket))
}

async fn serve(shared: Arc<DiscordShared>, mut socket: Socket) {
    let (out, mut commands) = mpsc::unbounded_channel();
    let number = shared.sessions.lock().connect(out.clone());
    let mut connection = Connection {
        shared: shared.clone(),
        number,
        is_authorized: false,
        frames: Window::new(120, Duration::from_secs(60)),
    };
    let interval = shared.options.heartbeat.as_millis() as u64;
    let _ = out.send(Out::Frame(
        json!({"op": 10, "d": {"heartbeat_interval": interval}, "s": null, "t": null}),
    ));
    let limit = shared.options.heartbeat * 3;
    let mut deadline = tokio::time::Instant::now() + limit;
    let mut ends = false;
    loop {
        let command = tokio::select! {
            command = commands.recv() => command.unwrap_or(Out::Drop),
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    if text.contains("\"op\":1") {
                        deadline = tokio::time::Instant::now() + limit;
                    }
                    match connection.receive(text.as_str(), &out) {
                        Outcome::Continue => continue,
                        Outcome::Close(code) => Out::Close(code),
                    }
                }
                Some(Ok(Message::Close(frame))) => {
                    let code = frame.map_or(1005, |frame| u16::from(frame.code));
                    shared.calls.record("gateway close", json!({"code": code}), 0);
                    ends = matches!(code, 1000 | 1001);
                    // Sends the answer that the library prepared.
                    let _ = socket.flush().await;
                    break;
                }
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => break,
            },
            () = sleep_until(deadline) => Out::Close(4009),
        };
        if number <= shared.silent.load(Ordering::SeqCst) && !matches!(command, Out::Drop) {
            continue;
        }
        match command {
            Out::Frame(frame) => drop(socket.send(Message::text(frame.to_string())).await),
            Out::Raw(text) => drop(socket.send(Message::text(text)).await),
            Out::Close(code) => {
                let frame = CloseFrame {
                    code: CloseCode::from(code),
                    reason: "".into(),
                };
                let _ = socket.close(Some(frame)).await;
                let rest = async { while let Some(Ok(_)) = socket.next().await {} };
                let _ = timeout(Duration::from_secs(1), rest).await;
                break;
            }
            Out::Drop => break,
        }
    }
    shared.sessions.lock().disconnect(number, ends);
}

impl Connection {
    fn receive(&mut self, text: &str, out: &mpsc::UnboundedSender<Out>) -> Outcome {
        if self.frames.call(Instant::now()).is_err() {
            return Outcome::Close(4008);
        }
        let Ok(frame) = serde_json::from_str::<Value>(text) else {
            return Outcome::Close(4002);
        };
        if text.len() > MAX_FRAME {
            return Outcome::Close(4002);
        }
        let data = &frame["d"];
        match frame["op"].as_u64() {
            Some(1) => {
                self.shared
                    .calls
                    .record("gateway heartbeat", data.clone(), 0);
                let _ = out.send(Out::Frame(
                    json!({"op": 11, "d": null, "s": null, "t": null}),
                ));
                Outcome::Continue
            }
            Some(2) => self.record("gateway identify", data, Self::identify),
            Some(6) => self.record("gateway resume", data, Self::resume),
            Some(3 | 4 | 8) if self.is_authorized => Outcome::Continue,
            Some(3 | 4 | 8) => Outcome::Close(4003),
            _ => Outcome::Close(4001),
        }
    }

    fn record(
        &mut self,
        name: &str,
        data: &Value,
        action: fn(&mut Self, &Value) -> Outcome,
    ) -> Outcome {
        let outcome = if self.shared.faults.take(name).is_some() {
            Outcome::Close(4000)
        } else if self.is_authorized {
            Outcome::Close(4005)
        } else if data["token"] == json!(self.shared.options.token) {
            action(self, data)
        } else {
            Outcome::Close(4004)
        };
        let error = match outcome {
            Outcome::Continue => 0,
            Outcome::Close(code) => i64::from(code),
        };
        self.shared.calls.record(name, data.clone(), error);
        outcome
    }

    fn identify(&mut self, data: &Value) -> Outcome {
        let Some(intents) = data["intents"].as_u64().filter(|bits| *bits < 1 << 26) else {
            return Outcome::Close(4013);
        };
        let is_permitted = self.shared.options.message_content || intents & MESSAGE_CONTENT == 0;
        if intents & NEVER_PERMITTED != 0 || !is_permitted {
            return Outcome::Close(4014);
        }
        if !["os", "browser", "device"]
            .iter()
            .all(|key| data["properties"][key].is_string())
        {
            return Outcome::Close(4002);
        }
        let spent =
            self.shared
                .identifies
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                    left.checked_sub(1)
                });
        if spent.is_err() {
            self.shared.violation("identify beyond session_start_limit");
            return Outcome::Close(4004);
        }
        self.is_authorized = true;
        let mut sessions = self.shared.sessions.lock();
        let id = sessions.begin(self.number, intents);
        let ready = json!({
            "v": 10, "user": user(BOT, "bot", true), "session_id": id, "session_type": "normal",
            "guilds": [{"id": GUILD.to_string(), "unavailable": true}],
            "resume_gateway_url": self.shared.gateway(),
            "application": {"id": BOT.to_string(), "flags": 0}, "shard": [0, 1],
        });
        sessions.send(&id, "READY", ready);
        sessions.send(&id, "GUILD_CREATE", guild(&self.shared));
        Outcome::Continue
    }

    fn resume(&mut self, data: &Value) -> Outcome {
        let (Some(id), Some(seq)) = (data["session_id"].as_str(), data["seq"].as_u64()) else {
            return Outcome::Close(4002);
        };
        let mut sessions = self.shared.sessions.lock();
        match sessions.resume(id, self.number, seq as usize) {
            Some(true) => {
                sessions.send(id, "RESUMED", json!({"_trace": []}));
                self.is_authorized = true;
                Outcome::Continue
            }
            Some(false) => Outcome::Close(4007),
            None => {
                sessions.reply(self.number, json!({"op": 9, "d": false}));
                Outcome::Continue
            }
        }
    }
}

/// Builds the event that describes the guild.
fn guild(shared: &DiscordShared) -> Value {
    let rooms = shared.rooms.lock();
    let (threads, channels): (Vec<_>, Vec<_>) = rooms
        .channels
        .values()
        .filter(|channel| channel.guild.is_some())
        .partition(|channel| channel.parent.is_some());
    let shown =
        |channels: Vec<&super::rooms::Channel>| channels.iter().map(|c| c.shown()).collect();
    let (threads, channels): (Vec<Value>, Vec<Value>) = (shown(threads), shown(channels));
    json!({
        "id": GUILD.to_string(), "name": "guild", "icon": null, "owner_id": "9", "region": "",
        "afk_timeout": 300, "verification_level": 0, "default_message_notifications": 0,
        "explicit_content_filter": 0, "emojis": [], "stickers": [], "features": [],
        "mfa_level": 0, "system_channel_flags": 0, "premium_tier": 0, "preferred_locale": "en-US",
        "nsfw_level": 0, "large": false, "unavailable": false, "member_count": 2,
        "roles": [{
            "id": GUILD.to_string(), "name": "@everyone", "color": 0, "hoist": false,
            "position": 0, "permissions": "2147483647", "managed": false, "mentionable": false,
        }],
        "members": [{
            "user": user(BOT, "bot", true), "roles": [], "flags": 0,
            "joined_at": "2026-11-23T00:00:00+00:00", "deaf": false, "mute": false,
        }],
        "channels": channels, "threads": threads, "voice_states": [], "presences": [],
        "stage_instances": [], "guild_scheduled_events": [], "soundboard_sounds": [],
    })
}
