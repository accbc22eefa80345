//! Rust handle of the fake.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::deliveries::{callback, deliver};
use super::files;
use super::links::Command;
use super::options::SlackOptions;
use super::people::{disconnect, press, speak};
use super::shared::Shared;
use super::workspace::{BOT_USER, SlackFile, SlackMessage};
use super::{control, routes};
use crate::common::{Calls, Faults, Server, control_routes};

/// Running fake of Slack with the team `T1`, the bot `UBOT` and the channels `C1`, `C2` and `G1`.
#[derive(Debug)]
pub struct SlackFake {
    shared: Arc<Shared>,
    server: Server,
}

impl SlackFake {
    /// Starts a fake.
    pub async fn start(options: SlackOptions) -> std::io::Result<Self> {
        let (listener, address) = Server::bind(options.port).await?;
        let shared = Arc::new(Shared::new(options, format!("http://{address}")));
        let routes = routes::routes(shared.clone())
            .merge(control::routes(shared.clone()))
            .merge(control_routes(shared.calls.clone(), shared.faults.clone()));
        let server = Server::serve(listener, address, routes);
        Ok(Self { shared, server })
    }

    /// Returns the base address.
    pub fn base(&self) -> String {
        self.server.base()
    }

    /// Returns the value of the setting `api_base`.
    pub fn api_base(&self) -> String {
        format!("{}/api", self.server.base())
    }

    /// Returns the record of calls. Besides methods it contains `socket.open`, `socket.close`,
    /// `envelope`, `ack`, `unconnected`, `undelivered`, `upload`, `download`, `ping` and `leak`.
    pub fn calls(&self) -> &Calls {
        &self.shared.calls
    }

    /// Returns the scripted faults.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Changes the options; later calls obey the change.
    pub fn configure(&self, change: impl FnOnce(&mut SlackOptions)) {
        change(&mut self.shared.options.lock());
    }

    /// Writes a message in a channel and returns its timestamp. If it names the bot, the event
    /// `app_mention` follows the event `message`.
    pub fn say(&self, channel: &str, user: &str, text: &str) -> String {
        speak(&self.shared, channel, user, text, None, Vec::new())
    }

    /// Writes a message in a thread and returns its timestamp.
    pub fn say_in_thread(&self, channel: &str, user: &str, thread: &str, text: &str) -> String {
        let thread = Some(thread.to_owned());
        speak(&self.shared, channel, user, text, thread, Vec::new())
    }

    /// Writes a message that names the bot first and returns its timestamp.
    pub fn mention(&self, channel: &str, user: &str, text: &str) -> String {
        self.say(channel, user, &format!("<@{BOT_USER}> {text}"))
    }

    /// Writes a direct message and returns its timestamp. The channel is `D` and the user's id.
    pub fn say_dm(&self, user: &str, text: &str) -> String {
        speak(
            &self.shared,
            &format!("D{user}"),
            user,
            text,
            None,
            Vec::new(),
        )
    }

    /// Writes a message with a file and returns its timestamp.
    pub fn say_file(
        &self,
        channel: &str,
        user: &str,
        text: &str,
        (name, media_type, bytes): (&str, &str, &[u8]),
    ) -> String {
        let view = {
            let mut workspace = self.shared.workspace.lock();
            let bytes = Bytes::copy_from_slice(bytes);
            let id = files::add(&mut workspace, name, media_type, bytes.len(), Some(bytes));
            files::view(&id, &workspace.files[&id], &self.shared.base)
        };
        speak(&self.shared, channel, user, text, None, vec![view])
    }

    /// Presses the button with this value at a message.
    pub fn press(&self, channel: &str, ts: &str, value: &str, user: &str) -> bool {
        press(&self.shared, channel, ts, value, user)
    }

    /// Delivers an event.
    pub fn send_event(&self, event: Value) {
        deliver(&self.shared, "events_api", callback(event));
    }

    /// Delivers the payload of an envelope of any kind.
    pub fn send_envelope(&self, kind: &'static str, payload: Value) {
        deliver(&self.shared, kind, payload);
    }

    /// Sends a text frame on every connection.
    pub fn send_text(&self, text: &str) {
        self.shared.links.all(&Command::Text(text.to_owned()));
    }

    /// Sends a binary frame on every connection.
    pub fn send_bytes(&self, bytes: &[u8]) {
        self.shared.links.all(&Command::Binary(bytes.to_vec()));
    }

    /// Announces the end of every connection.
    pub fn disconnect(&self, reason: &str) {
        disconnect(&self.shared, reason);
    }

    /// Closes every connection with a close frame.
    pub fn close(&self, code: u16) {
        self.shared.links.all(&Command::Close(code));
    }

    /// Breaks every connection.
    pub fn drop_connections(&self) {
        self.shared.links.all(&Command::Abort);
    }

    /// Makes every connection silent: nothing is read and nothing is written, but it stays open.
    pub fn silence(&self) {
        self.shared.links.all(&Command::Silence);
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.links.count()
    }

    /// Returns the messages of a channel in order, without deleted ones.
    pub fn messages(&self, channel: &str) -> Vec<SlackMessage> {
        let workspace = self.shared.workspace.lock();
        let found = workspace.channels.get(channel);
        let messages =
            found.map(|channel| channel.messages.iter().filter(|message| !message.deleted));
        messages.into_iter().flatten().cloned().collect()
    }

    /// Returns the bot's messages of a channel in order.
    pub fn answers(&self, channel: &str) -> Vec<SlackMessage> {
        let mut messages = self.messages(channel);
        messages.retain(|message| message.user == BOT_USER);
        messages
    }

    /// Returns a file.
    pub fn file(&self, id: &str) -> Option<SlackFile> {
        self.shared.workspace.lock().files.get(id).cloned()
    }

    /// Archives a channel, or removes the bot from it.
    pub fn set_channel(&self, channel: &str, member: bool, archived: bool) {
        if let Some(channel) = self.shared.workspace.lock().channels.get_mut(channel) {
            channel.member = member;
            channel.archived = archived;
        }
    }

    /// Deletes a message.
    pub fn delete(&self, channel: &str, ts: &str) {
        let mut workspace = self.shared.workspace.lock();
        if let Some(message) = workspace
            .channels
            .get_mut(channel)
            .and_then(|found| found.message(ts))
        {
            message.deleted = true;
        }
    }

    /// Sets the lifetime of streams, also of those that are open.
    pub fn expire_streams(&self, lifetime: Duration) {
        self.configure(|options| options.stream_lifetime = lifetime);
    }
}

#[cfg(test)]
#[path = "handle_tests.rs"]
mod tests;
