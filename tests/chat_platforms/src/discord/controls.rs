//! Actions of persons and of the platform that tests cause.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::{Value, json};

use super::rooms::{BOT, GUILD, PERSON, PersonMessage, id_of, user};
use super::sessions::Out;
use super::shared::{DiscordShared, Interaction};

/// Actions of persons and of the platform. Clones share the platform.
#[derive(Debug, Clone)]
pub struct DiscordControls(pub(super) Arc<DiscordShared>);

impl DiscordControls {
    /// Writes as a person and returns the id of the message.
    pub fn write(&self, message: &PersonMessage) -> u64 {
        let event = self.0.rooms.lock().write(message, &self.0.base());
        self.0.sessions.lock().dispatch("MESSAGE_CREATE", &event);
        id_of(&event["id"]).unwrap_or_default()
    }

    /// Writes as a person in a channel.
    pub fn say(&self, channel: u64, text: &str) -> u64 {
        self.write(&PersonMessage::new(channel, text))
    }

    /// Sends any event to all sessions.
    pub fn dispatch(&self, kind: &str, data: &Value) {
        self.0.sessions.lock().dispatch(kind, data);
    }

    /// Sends the last message event of each session once more.
    pub fn repeat_last(&self) {
        self.0.sessions.lock().repeat_last();
    }

    /// Presses a button of a message; `None` if there is no such button. Returns the id of the
    /// interaction.
    pub fn press(&self, message: u64, custom_id: &str, person: u64) -> Option<u64> {
        let (id, data) = {
            let mut rooms = self.0.rooms.lock();
            let shown = rooms.messages.get(&message)?.clone();
            let rows = shown["components"].as_array()?;
            let mut buttons = rows.iter().filter_map(|row| row["components"].as_array());
            buttons
                .any(|row| row.iter().any(|button| button["custom_id"] == custom_id))
                .then_some(())?;
            let id = rooms.id();
            let channel = rooms.channels.get(&id_of(&shown["channel_id"])?)?;
            let person = user(person, "ann", false);
            let mut data = json!({
                "id": id.to_string(), "application_id": BOT.to_string(), "type": 3,
                "token": format!("interaction-{id}"), "version": 1,
                "data": {"component_type": 2, "custom_id": custom_id},
                "channel_id": shown["channel_id"], "channel": channel.shown(), "message": shown,
                "locale": "en-US", "entitlements": [], "app_permissions": "0",
                "attachment_size_limit": 10_485_760,
            });
            if let Some(guild) = channel.guild {
                data["guild_id"] = json!(guild.to_string());
                data["member"] = json!({
                    "user": person, "roles": [], "permissions": "0", "flags": 0, "deaf": false,
                    "mute": false, "joined_at": "2026-11-23T00:00:00+00:00",
                });
            } else {
                data["user"] = person;
            }
            (id, data)
        };
        self.begin(id, &data);
        Some(id)
    }

    /// Runs a listed command as a person and returns the id of the interaction.
    pub fn command(&self, channel: u64, name: &str, text: &str) -> u64 {
        let id = self.0.rooms.lock().id();
        let data = json!({
            "id": id.to_string(), "application_id": BOT.to_string(), "type": 2,
            "token": format!("interaction-{id}"), "version": 1, "guild_id": GUILD.to_string(),
            "data": {
                "id": "5", "name": name, "type": 1,
                "options": [{"name": "text", "type": 3, "value": text}],
            },
            "channel_id": channel.to_string(), "locale": "en-US", "entitlements": [],
            "app_permissions": "0", "attachment_size_limit": 10_485_760,
            "member": {
                "user": user(PERSON, "ann", false), "roles": [], "permissions": "0", "flags": 0,
                "deaf": false, "mute": false, "joined_at": "2026-11-23T00:00:00+00:00",
            },
        });
        self.begin(id, &data);
        id
    }

    fn begin(&self, id: u64, data: &Value) {
        let interaction = Interaction {
            token: format!("interaction-{id}"),
            begun: Instant::now(),
            answered: false,
        };
        self.0.interactions.lock().insert(id, interaction);
        self.0.sessions.lock().dispatch("INTERACTION_CREATE", data);
    }

    /// `true` if an interaction was answered.
    pub fn is_answered(&self, interaction: u64) -> bool {
        let interactions = self.0.interactions.lock();
        interactions.get(&interaction).is_some_and(|i| i.answered)
    }

    /// Asks all connections to reconnect (op 7).
    pub fn reconnect(&self) {
        let frame = || Out::Frame(json!({"op": 7, "d": null, "s": null, "t": null}));
        self.0.sessions.lock().command(frame);
    }

    /// Declares the sessions of all connections invalid (op 9).
    pub fn invalidate(&self, resumable: bool) {
        let frame = || Out::Frame(json!({"op": 9, "d": resumable, "s": null, "t": null}));
        let mut sessions = self.0.sessions.lock();
        sessions.command(frame);
        if !resumable {
            sessions.forget();
        }
    }

    /// Ends all sessions silently, as after an absence that was too long.
    pub fn forget_sessions(&self) {
        self.0.sessions.lock().forget();
    }

    /// Closes all connections with a code.
    pub fn close(&self, code: u16) {
        self.0.sessions.lock().command(|| Out::Close(code));
    }

    /// Ends all connections without close frames.
    pub fn drop_connections(&self) {
        self.0.sessions.lock().command(|| Out::Drop);
    }

    /// Sends a text as it is to all connections.
    pub fn raw(&self, text: &str) {
        self.0.sessions.lock().command(|| Out::Raw(text.to_owned()));
    }

    /// Stops or continues sending anything on the connections that are open now, acknowledgements
    /// of heartbeats included.
    pub fn silence(&self, on: bool) {
        let last = if on { self.0.sessions.lock().last() } else { 0 };
        self.0.silent.store(last, Ordering::SeqCst);
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.0.sessions.lock().open()
    }

    /// Removes a message, as a moderator does.
    pub fn remove_message(&self, message: u64) {
        self.0.rooms.lock().messages.remove(&message);
    }

    /// Returns all messages of all channels in order.
    pub fn messages(&self) -> Vec<Value> {
        self.0.rooms.lock().messages.values().cloned().collect()
    }

    /// Returns the contents of the bot's messages in a channel in order.
    pub fn texts(&self, channel: u64) -> Vec<String> {
        let (channel, bot) = (channel.to_string(), BOT.to_string());
        self.messages()
            .iter()
            .filter(|message| message["channel_id"] == channel && message["author"]["id"] == bot)
            .filter_map(|message| message["content"].as_str().map(ToOwned::to_owned))
            .collect()
    }

    /// Returns the bot's reactions: message and emoji.
    pub fn reactions(&self) -> Vec<(u64, String)> {
        self.0.rooms.lock().reactions.clone()
    }

    /// Returns behaviour that Discord tolerates and our rules forbid.
    pub fn violations(&self) -> Vec<String> {
        self.0.violations.lock().clone()
    }
}
