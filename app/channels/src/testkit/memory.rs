//! Chat platform in memory. It redelivers events that were not acknowledged.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::message::{MemoryMessage, card_key, live_key};
use crate::platform::{
    Abilities, Content, Delivery, Event, EventSink, FileBody, Identity, IncomingFile, LiveReply,
    OutgoingMessage, Platform, PlatformError, Sent, SinkError,
};

/// Delay before an event that was refused is delivered again.
const REDELIVERY: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
pub(super) struct Inner {
    /// Events that are not acknowledged.
    pending: VecDeque<Event>,
    messages: Vec<MemoryMessage>,
    /// Errors of the next calls to send.
    pub(super) faults: VecDeque<PlatformError>,
    /// `true` if the platform fails to send files.
    pub(super) files_fail: bool,
    /// Number of next calls to send whose answer is lost after their effect.
    pub(super) lost_answers: usize,
    /// Idempotency keys with their message.
    keys: Vec<(String, String)>,
    next_id: u64,
    confirmed: Vec<String>,
    /// Number of downloads that never end.
    downloads: usize,
    acknowledged: usize,
    /// Number of live messages that were shown without a preparation.
    pub(super) unprepared: usize,
    /// Number of times that all connections were broken.
    pub(super) breaks: u64,
    /// Number of connections that were closed after a stop.
    pub(super) closed: usize,
}

/// Platform in memory. Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryPlatform {
    abilities: Arc<Abilities>,
    /// Token of this bot; the platform knows the empty one only.
    token: SecretString,
    /// `false` if the platform ignores idempotency keys.
    has_keys: bool,
    /// `true` if live messages are found by what their preparation stored, and by nothing else.
    prepares: bool,
    pub(super) inner: Arc<Mutex<Inner>>,
    pub(super) changed: Arc<Notify>,
}

impl MemoryPlatform {
    /// Creates a platform with these abilities.
    pub fn new(abilities: Abilities) -> Self {
        Self {
            abilities: Arc::new(abilities),
            token: SecretString::default(),
            has_keys: true,
            prepares: false,
            inner: Arc::default(),
            changed: Arc::default(),
        }
    }

    /// Ignores idempotency keys: a call that is repeated has its effect again.
    #[must_use]
    pub fn without_keys(self) -> Self {
        Self {
            has_keys: false,
            ..self
        }
    }

    /// Finds live messages by what their preparation stored, and by nothing else.
    #[must_use]
    pub fn preparing(self) -> Self {
        Self {
            prepares: true,
            ..self
        }
    }

    /// Returns a bot on the same platform whose token is rejected.
    #[must_use]
    pub fn with_wrong_token(&self, token: &str) -> Self {
        Self {
            token: token.into(),
            ..self.clone()
        }
    }

    fn authorize(&self) -> Result<(), PlatformError> {
        if self.token.expose_secret().is_empty() {
            return Ok(());
        }
        Err(PlatformError::Rejected("the token is wrong".to_owned()))
    }

    pub(super) fn new_id(&self) -> String {
        let mut inner = self.inner.lock();
        inner.next_id += 1;
        inner.next_id.to_string()
    }

    /// Queues an event.
    pub(super) fn queue(&self, event: Event) {
        self.inner.lock().pending.push_back(event);
        self.changed.notify_waiters();
    }

    /// Returns the number of acknowledged deliveries.
    pub fn acknowledged(&self) -> usize {
        self.inner.lock().acknowledged
    }

    /// Returns the number of events that are not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.inner.lock().pending.len()
    }

    /// Returns all messages of the bot.
    pub fn messages(&self) -> Vec<MemoryMessage> {
        self.inner.lock().messages.clone()
    }

    /// Returns the texts of the final messages of a chat.
    pub fn texts(&self, chat: &str) -> Vec<String> {
        self.messages()
            .into_iter()
            .filter(|message| message.chat == chat && message.is_final)
            .map(|message| message.text)
            .collect()
    }

    /// Returns the texts that confirmed presses.
    pub fn confirmed(&self) -> Vec<String> {
        self.inner.lock().confirmed.clone()
    }

    /// Returns the number of begun downloads of files whose reference has `endless`.
    pub fn endless_downloads(&self) -> usize {
        self.inner.lock().downloads
    }

    /// Waits until `found` returns a value. The caller limits the time.
    pub async fn wait_for<T>(&self, mut found: impl FnMut(&Self) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(value) = found(self) {
                return value;
            }
            changed.await;
        }
    }

    /// Waits until a chat has this number of final messages, and returns their texts.
    pub async fn answers(&self, chat: &str, count: usize) -> Vec<String> {
        self.wait_for(|platform| {
            let texts = platform.texts(chat);
            (texts.len() >= count).then_some(texts)
        })
        .await
    }

    /// Removes the first delivery of an event, which another connection may have acknowledged.
    fn acknowledge(&self, event: &Event) {
        let mut inner = self.inner.lock();
        if inner.pending.front() == Some(event) {
            inner.pending.pop_front();
            inner.acknowledged += 1;
        }
    }

    /// Performs a call once per key, if there are keys, and returns the id of the message.
    pub(super) fn post(&self, key: &str, chat: &str, text: &str, is_final: bool) -> String {
        let mut inner = self.inner.lock();
        let known = inner.keys.iter().find(|(known, _)| known == key);
        if let Some((_, id)) = known.filter(|_| self.has_keys) {
            return id.clone();
        }
        inner.next_id += 1;
        let id = inner.next_id.to_string();
        inner.keys.push((key.to_owned(), id.clone()));
        inner.messages.push(MemoryMessage {
            id: id.clone(),
            chat: chat.to_owned(),
            text: text.to_owned(),
            buttons: Vec::new(),
            is_final,
            versions: 1,
        });
        drop(inner);
        self.changed.notify_waiters();
        id
    }

    fn edit(&self, id: &str, text: &str, buttons: Vec<String>, is_final: bool) {
        let mut inner = self.inner.lock();
        if let Some(message) = inner.messages.iter_mut().find(|message| message.id == id) {
            message.text = text.to_owned();
            message.buttons = buttons;
            message.is_final |= is_final;
            message.versions += 1;
        }
        drop(inner);
        self.changed.notify_waiters();
    }
}

#[async_trait]
impl Platform for MemoryPlatform {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn identify(&self) -> Result<Identity, PlatformError> {
        self.authorize()?;
        Ok(Identity {
            account: "bot".to_owned(),
            name: "Bot".to_owned(),
            warnings: Vec::new(),
        })
    }

    async fn listen(
        &self,
        sink: &dyn EventSink,
        _cursor: Option<String>,
        stop: CancellationToken,
    ) -> Result<(), PlatformError> {
        self.authorize()?;
        let breaks = self.inner.lock().breaks;
        sink.connected();
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if stop.is_cancelled() {
                return self.close().await;
            }
            let next = {
                let inner = self.inner.lock();
                if inner.breaks != breaks {
                    return Err(PlatformError::Unavailable("broken".to_owned()));
                }
                inner.pending.front().cloned()
            };
            if let Some(event) = next {
                let cursor = Some(event.id.clone());
                match sink.accept(vec![event.clone()], cursor).await {
                    Ok(()) => self.acknowledge(&event),
                    Err(SinkError::Fenced) => return Err(SinkError::Fenced.into()),
                    Err(_) => tokio::select! {
                        () = tokio::time::sleep(REDELIVERY) => {}
                        () = stop.cancelled() => {}
                    },
                }
                continue;
            }
            tokio::select! {
                () = changed => {}
                () = stop.cancelled() => {}
            }
        }
    }

    async fn send(
        &self,
        message: &OutgoingMessage,
        file: Option<FileBody>,
        delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError> {
        if let Some(error) = self.inner.lock().faults.pop_front() {
            return Err(error);
        }
        if file.is_some() && self.inner.lock().files_fail {
            return Err(PlatformError::Unavailable("the upload failed".to_owned()));
        }
        let chat = &message.target.chat.id;
        let (text, buttons) = match &message.content {
            Content::Text(part) => (part.markup.clone(), Vec::new()),
            Content::Buttons { text, buttons } => (
                text.markup.clone(),
                buttons.iter().map(|button| button.data.clone()).collect(),
            ),
            Content::File { .. } | Content::TextFile { .. } => {
                let name = file.map(|file| format!("{} ({} bytes)", file.name, file.bytes.len()));
                (name.unwrap_or_default(), Vec::new())
            }
        };
        let id = match message.live["id"].as_str() {
            Some(id) => id.to_owned(),
            None => {
                let card = &message.live["card"];
                let key = if card.is_null() {
                    delivery.id.to_string()
                } else {
                    card_key(card)
                };
                self.post(&key, chat, &text, false)
            }
        };
        self.edit(&id, &text, buttons, true);
        let mut inner = self.inner.lock();
        if inner.lost_answers > 0 {
            inner.lost_answers -= 1;
            return Err(PlatformError::Unavailable("the answer was lost".to_owned()));
        }
        Ok(Sent { ids: vec![id] })
    }

    fn finds_live(&self) -> bool {
        self.has_keys
    }

    fn prepares_live(&self) -> bool {
        self.prepares
    }

    async fn prepare_live(&self, reply: &mut LiveReply) -> Result<(), PlatformError> {
        if self.prepares {
            let mut inner = self.inner.lock();
            inner.next_id += 1;
            reply.state = json!({ "card": inner.next_id });
        }
        Ok(())
    }

    async fn update_live(
        &self,
        reply: &mut LiveReply,
        markdown: &str,
    ) -> Result<(), PlatformError> {
        let id = match reply.state["id"].as_str() {
            Some(id) => id.to_owned(),
            None => {
                let chat = &reply.target.chat.id;
                let card = &reply.state["card"];
                let key = if self.prepares {
                    self.inner.lock().unprepared += usize::from(card.is_null());
                    card_key(card)
                } else {
                    live_key(reply.key)
                };
                let id = self.post(&key, chat, markdown, false);
                reply.state = json!({ "id": id });
                id
            }
        };
        let buttons = reply.stop.iter().map(|stop| stop.data.clone()).collect();
        self.edit(&id, markdown, buttons, false);
        Ok(())
    }

    async fn confirm_press(
        &self,
        _target: &crate::platform::Target,
        text: &str,
    ) -> Result<(), PlatformError> {
        self.inner.lock().confirmed.push(text.to_owned());
        self.changed.notify_waiters();
        Ok(())
    }

    async fn download(&self, file: &IncomingFile, max: u64) -> Result<Bytes, PlatformError> {
        if file.reference["endless"] == true {
            self.inner.lock().downloads += 1;
            self.changed.notify_waiters();
            return std::future::pending().await;
        }
        let text = file.reference["text"].as_str().unwrap_or_default();
        if text.len() as u64 > max {
            return Err(PlatformError::Refused("it is too large".to_owned()));
        }
        Ok(Bytes::copy_from_slice(text.as_bytes()))
    }
}
