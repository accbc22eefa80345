//! Fake of Feishu: the long connection, the message API and CardKit.
//!
//! Calls are recorded under their method and their path without ids, such as
//! `POST im/v1/messages/reply`, with the body `{"ids", "query", "body"}`. Faults are scripted under
//! the same names.

mod cards;
mod control;
mod files;
mod frames;
mod incoming;
mod limits;
mod line;
mod messages;
mod options;
mod refusal;
mod rest;
mod shared;
mod socket;
mod world;

use std::sync::Arc;

use axum::Router;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::common::{Calls, Faults, Server, control_routes};
use line::Outbound;
use shared::FeishuShared;
use world::FeishuWorld;

pub use frames::{CONTROL, DATA, FeishuFrame, FeishuHeader};
pub use incoming::FeishuIncoming;
pub use line::{FeishuAck, FeishuRefusedHandshake};
pub use options::FeishuOptions;
pub use world::{FeishuCard, FeishuFile, FeishuMessage};

/// Running fake. It stops when it is dropped.
#[derive(Debug)]
pub struct FeishuFake {
    server: Server,
    shared: Arc<FeishuShared>,
}

impl FeishuFake {
    /// Starts a fake on a free port.
    pub async fn start(options: FeishuOptions) -> std::io::Result<Self> {
        Self::start_at(0, options).await
    }

    /// Starts a fake on a port; 0 selects a free one.
    pub async fn start_at(port: u16, options: FeishuOptions) -> std::io::Result<Self> {
        let (listener, address) = Server::bind(port).await?;
        let shared = Arc::new(FeishuShared {
            socket_base: format!("ws://{address}"),
            world: Mutex::new(FeishuWorld::new(options.clone())),
            options,
            line: Mutex::default(),
            calls: Calls::default(),
            faults: Faults::default(),
            wake: Notify::new(),
            changes: watch::Sender::new(0),
            stop: CancellationToken::new(),
        });
        let routes = Router::new()
            .route(socket::PATH, axum::routing::get(socket::open))
            .merge(control::routes())
            .fallback(rest::serve)
            .with_state(Arc::clone(&shared))
            .merge(control_routes(shared.calls.clone(), shared.faults.clone()));
        let server = Server::serve(listener, address, routes);
        #[expect(
            clippy::disallowed_methods,
            reason = "a fake is a program of its own, without the task registry of the server"
        )]
        tokio::spawn(socket::deliver(Arc::clone(&shared)));
        Ok(Self { server, shared })
    }

    /// Returns the base address for the setting `domain`.
    pub fn base(&self) -> String {
        self.server.base()
    }

    /// Returns the record of calls.
    pub fn calls(&self) -> &Calls {
        &self.shared.calls
    }

    /// Returns the scripted faults.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Adds a chat.
    pub fn add_chat(&self, id: &str, is_direct: bool) {
        self.shared
            .world
            .lock()
            .chats
            .insert(id.to_owned(), is_direct);
    }

    /// Removes the bot from a chat.
    pub fn leave(&self, chat: &str) {
        self.shared.world.lock().left.insert(chat.to_owned());
    }

    /// Adds a file of a received message.
    pub fn add_file(&self, message: &str, key: &str, file_type: &str, bytes: bytes::Bytes) {
        self.shared.add_file(message, key, file_type, bytes);
    }

    /// Stores a message of a person without an event for it and returns its id. The chat is added
    /// if it does not exist.
    pub fn write_unseen(&self, incoming: FeishuIncoming) -> String {
        self.shared.write(incoming, false)
    }

    /// Waits until the clock has passed the times of all messages.
    pub fn next_millisecond(&self) {
        let before = world::now_ms();
        while world::now_ms() == before {
            std::thread::yield_now();
        }
    }

    /// Stores a message of a person, queues its event and returns its id. The chat is added if it
    /// does not exist.
    pub fn write(&self, incoming: FeishuIncoming) -> String {
        self.shared.write(incoming, true)
    }

    /// Queues the event of a stored message again.
    pub fn repeat(&self, message: &str, incoming: &FeishuIncoming) {
        self.shared.repeat(message, incoming);
    }

    /// Queues the event of a press on a button.
    pub fn press(&self, message: &str, user: &str, value: &Value) {
        self.shared.press(message, user, value, true);
    }

    /// Queues the callback of a press in the old form, a data frame of the type `card`.
    pub fn press_old(&self, message: &str, user: &str, value: &Value) {
        self.shared.press(message, user, value, false);
    }

    /// Queues an event with any payload.
    pub fn push(&self, id: &str, kind: &str, payload: impl Into<Vec<u8>>) {
        self.shared.push(id.to_owned(), kind, payload.into());
    }

    /// Sends bytes to every connection.
    pub fn push_bytes(&self, bytes: &[u8]) {
        for connection in &self.shared.line.lock().connections {
            let _ = connection.sender.send(Outbound::Bytes(bytes.to_vec()));
        }
    }

    /// Sends a close frame to every connection.
    pub fn close_connections(&self) {
        self.shared.end(false);
    }

    /// Ends every connection without a close frame.
    pub fn cut_connections(&self) {
        self.shared.end(true);
    }

    /// Selects whether pings remain unanswered.
    pub fn mute(&self, mute: bool) {
        self.shared.line.lock().mute = mute;
    }

    /// Refuses the next handshakes.
    pub fn refuse_handshakes(&self, refusals: impl IntoIterator<Item = FeishuRefusedHandshake>) {
        self.shared.line.lock().refusals.extend(refusals);
    }

    /// Forgets the calls that count for rate limits, as if a minute had passed.
    pub fn forget_limits(&self) {
        self.shared.world.lock().limits.clear();
    }

    /// Invalidates all tokens.
    pub fn expire_tokens(&self) {
        self.shared.world.lock().tokens.clear();
    }

    /// Removes a scope from the app.
    pub fn remove_scope(&self, scope: &str) {
        let mut world = self.shared.world.lock();
        world.missing_scopes.insert(scope.to_owned());
    }

    /// Refuses cards that contain a text.
    pub fn refuse_content(&self, text: &str, code: i64) {
        let mut world = self.shared.world.lock();
        world.refused_content.push((text.to_owned(), code));
    }

    /// Refuses calls for a message with a code from now on.
    pub fn lose_message(&self, id: &str, code: i64) {
        if let Some(message) = self.shared.world.lock().messages.get_mut(id) {
            message.gone = Some(code);
        }
    }

    /// Ends the streaming mode of all cards.
    pub fn end_streaming(&self) {
        for card in self.shared.world.lock().cards.values_mut() {
            card.streaming = false;
        }
    }

    /// Returns all messages in order.
    pub fn messages(&self) -> Vec<FeishuMessage> {
        self.shared.messages()
    }

    /// Returns the messages of the bot in order.
    pub fn sent(&self) -> Vec<FeishuMessage> {
        let mut messages = self.messages();
        messages.retain(|message| message.by_bot);
        messages
    }

    /// Returns the cards of CardKit.
    pub fn cards(&self) -> Vec<FeishuCard> {
        self.shared.world.lock().cards.values().cloned().collect()
    }

    /// Returns a file.
    pub fn file(&self, key: &str) -> Option<FeishuFile> {
        self.shared.world.lock().files.get(key).cloned()
    }

    /// Returns the text that a person sees in a message.
    pub fn visible(&self, message: &str) -> String {
        self.shared.world.lock().visible(message)
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.line.lock().connections.len()
    }

    /// Returns the number of connections since the start.
    pub fn opened(&self) -> u64 {
        self.shared.line.lock().opened
    }

    /// Returns the acknowledgements in order.
    pub fn acks(&self) -> Vec<FeishuAck> {
        self.shared.line.lock().acks.clone()
    }

    /// Returns the number of events that are not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.shared.line.lock().unacknowledged()
    }

    /// Returns the violations of the protocol.
    pub fn violations(&self) -> Vec<String> {
        self.shared.line.lock().violations.clone()
    }

    /// Returns the codes of close frames of ended connections; `None` if one ended without.
    pub fn closes(&self) -> Vec<Option<u16>> {
        self.shared.line.lock().closes.clone()
    }

    /// Waits until `found` returns a value. The caller limits the time.
    pub async fn wait_until<T>(&self, mut found: impl FnMut(&Self) -> Option<T>) -> T {
        let mut changes = self.shared.changes.subscribe();
        loop {
            if let Some(value) = found(self) {
                return value;
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for FeishuFake {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

#[cfg(test)]
#[path = "feishu_tests.rs"]
mod tests;
