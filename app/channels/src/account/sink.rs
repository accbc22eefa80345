//! Stores the events of a listener and wakes their conversations.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_domain::channels::{
    Acceptance, ChannelStoreError, InboxBatch, InboxLimits, MAX_RAW_BYTES, MessageKey,
    NewInboxMessage, Urgency,
};
use harness::runtime::fail_points;
use tokio::time::Instant;

use super::conversations;
use crate::bot::{Bot, StatusCell};
use crate::commands;
use crate::keys::conversation_key;
use crate::measures;
use crate::outbox;
use crate::people::is_unaddressed;
use crate::platform::{
    ChatKind, Event, EventBody, EventSink, GroupConversations, SinkError, cut_text,
};
use crate::turn::{notice, stop_data};
use crate::words;

/// Sink of one connection.
#[derive(Debug)]
pub(super) struct InboxSink {
    pub(super) bot: Arc<Bot>,
    pub(super) status: Arc<StatusCell>,
}

#[async_trait]
impl EventSink for InboxSink {
    fn connected(&self) {
        self.status.connected();
    }

    async fn accept(&self, events: Vec<Event>, cursor: Option<String>) -> Result<(), SinkError> {
        let started = Instant::now();
        let stored = self.store(events, cursor).await;
        measures::accepted(self.bot.provider, started);
        stored.map_err(|error| {
            self.bot.check_fence(&error);
            match error {
                ChannelStoreError::Fenced => SinkError::Fenced,
                ChannelStoreError::InboxFull => SinkError::Full,
                ChannelStoreError::Store(error) => {
                    tracing::warn!(%error, account = %self.bot.claim.account, "received events cannot be stored");
                    SinkError::Unavailable
                }
            }
        })
    }
}

impl InboxSink {
    async fn store(
        &self,
        events: Vec<Event>,
        cursor: Option<String>,
    ) -> Result<(), ChannelStoreError> {
        let bot = &self.bot;
        let mut stored = Vec::new();
        // Conversations of earlier messages of this batch.
        let mut batch_links: HashMap<(String, String), String> = HashMap::new();
        for mut event in events {
            if let EventBody::Renamed { to } = &event.body {
                self.rename(&event.chat.id, to).await?;
                continue;
            }
            if is_unaddressed(&bot.rules, &event) {
                continue;
            }
            limit_text(&mut event);
            let conversation = self.conversation_of(&event, &batch_links).await?;
            let place = (event.chat.id.clone(), event.id.clone());
            batch_links.insert(place, conversation.clone());
            let Some(value) = encoded(&event) else {
                tracing::warn!(account = %bot.claim.account, event = %event.id, "an event is too large and was dropped");
                continue;
            };
            let message = NewInboxMessage {
                key: MessageKey {
                    account: bot.claim.account.clone(),
                    workspace: event.workspace.clone(),
                    chat: event.chat.id.clone(),
                    message: event.id.clone(),
                },
                conversation,
                urgency: urgency(&event),
                event: value,
            };
            stored.push((event, message));
        }
        if stored.is_empty() && cursor.is_none() {
            return Ok(());
        }
        let batch = InboxBatch {
            messages: stored.iter().map(|(_, message)| message.clone()).collect(),
            cursor,
        };
        fail_points::pass("channel.received");
        let now = bot.hub.clock.now();
        let results = bot
            .hub
            .stores
            .inbox
            .accept(&bot.claim, batch, InboxLimits::default(), now)
            .await?;
        fail_points::pass("channel.accepted");
        for ((event, message), result) in stored.into_iter().zip(results) {
            match result {
                Acceptance::Stored => self.stored(&event, message).await?,
                // The link may be missing if the process ended after the acceptance.
                Acceptance::Duplicate => self.link(&event, &message).await?,
                Acceptance::ConversationFull => self.refused(&event, &message).await?,
            }
        }
        Ok(())
    }

    /// Gives a chat its new id, and wakes the conversations with messages that follow.
    async fn rename(&self, from: &str, to: &str) -> Result<(), ChannelStoreError> {
        let bot = &self.bot;
        let stores = &bot.hub.stores;
        let now = bot.hub.clock.now();
        let beginning = bot.beginning.write().await;
        stores
            .conversations
            .rename_chat(&bot.claim, from, to, now)
            .await?;
        drop(beginning);
        let account = &bot.claim.account;
        for (conversation, urgency) in stores.inbox.waiting_conversations(account).await? {
            conversations::wake(bot, conversation, urgency);
        }
        for chat in stores.outbox.pending_chats(account).await? {
            outbox::wake(bot, chat);
        }
        Ok(())
    }

    async fn conversation_of(
        &self,
        event: &Event,
        batch: &HashMap<(String, String), String>,
    ) -> Result<String, ChannelStoreError> {
        let bot = &self.bot;
        let linked = async |message: &str| {
            let place = (event.chat.id.clone(), message.to_owned());
            if let Some(conversation) = batch.get(&place) {
                return Ok(Some(conversation.clone()));
            }
            let outbox = &bot.hub.stores.outbox;
            outbox
                .conversation_of(&bot.claim.account, &event.chat.id, message)
                .await
        };
        match &event.body {
            EventBody::Message(message) => {
                let groups = bot.platform.abilities().groups;
                let replied = match &message.reply_to {
                    Some(replied) if event.chat.kind == ChatKind::Group => linked(replied).await?,
                    _ => None,
                };
                Ok(conversation_key(
                    &event.chat,
                    &event.id,
                    message,
                    replied,
                    groups,
                ))
            }
            EventBody::Press(press) => {
                let of_message = match &press.message {
                    Some(message) => linked(message).await?,
                    None => None,
                };
                let of_turn = stop_data::parse(&press.data)
                    .and_then(|id| bot.active.by_id(id))
                    .map(|turn| turn.conversation);
                Ok(of_message
                    .or(of_turn)
                    .unwrap_or_else(|| event.chat.id.clone()))
            }
            EventBody::Stop { topic: Some(topic) } => Ok(format!("{}:{topic}", event.chat.id)),
            EventBody::Stop { topic: None } | EventBody::Renamed { .. } => {
                Ok(event.chat.id.clone())
            }
        }
    }

    async fn stored(
        &self,
        event: &Event,
        message: NewInboxMessage,
    ) -> Result<(), ChannelStoreError> {
        self.link(event, &message).await?;
        conversations::wake(&self.bot, message.conversation, message.urgency);
        Ok(())
    }

    /// Links a message of a group to its conversation, so that replies to it continue that one.
    async fn link(
        &self,
        event: &Event,
        message: &NewInboxMessage,
    ) -> Result<(), ChannelStoreError> {
        let bot = &self.bot;
        let has_chain = event.chat.kind == ChatKind::Group
            && bot.platform.abilities().groups == GroupConversations::ReplyChain
            && matches!(event.body, EventBody::Message(_));
        if !has_chain {
            return Ok(());
        }
        let (now, outbox) = (bot.hub.clock.now(), &bot.hub.stores.outbox);
        let (chat, id) = (&event.chat.id, &event.id);
        outbox
            .link(&bot.claim, chat, id, &message.conversation, now)
            .await
    }

    /// Informs the sender, at most once a minute, about a message that was not stored.
    async fn refused(
        &self,
        event: &Event,
        message: &NewInboxMessage,
    ) -> Result<(), ChannelStoreError> {
        let bot = &self.bot;
        if !bot
            .exchanges
            .may_inform(&message.conversation, Instant::now())
        {
            return Ok(());
        }
        let reply = notice(
            bot,
            message.key.id(),
            event,
            &message.conversation,
            words::TOO_MANY_WAITING,
        );
        let now = bot.hub.clock.now();
        let outbox = &bot.hub.stores.outbox;
        outbox.enqueue(&bot.claim, reply, now).await?;
        outbox::wake(bot, event.chat.id.clone());
        Ok(())
    }
}

fn urgency(event: &Event) -> Urgency {
    let is_immediate = match &event.body {
        EventBody::Message(message) => commands::is_immediate(&message.text),
        EventBody::Press(press) => stop_data::parse(&press.data).is_some(),
        EventBody::Stop { .. } => true,
        EventBody::Renamed { .. } => false,
    };
    if is_immediate {
        Urgency::Immediate
    } else {
        Urgency::InOrder
    }
}

fn limit_text(event: &mut Event) {
    if let EventBody::Message(message) = &mut event.body {
        let (text, is_longer) = cut_text(std::mem::take(&mut message.text));
        message.text = text;
        message.cut |= is_longer;
    }
}

/// Encodes an event within the size limit, if necessary without its names and context.
fn encoded(event: &Event) -> Option<serde_json::Value> {
    let fits = |event: &Event| {
        let text = serde_json::to_string(event).ok()?;
        (text.len() <= MAX_RAW_BYTES).then_some(())?;
        serde_json::to_value(event).ok()
    };
    fits(event).or_else(|| {
        let mut reduced = event.clone();
        reduced.context = serde_json::Value::Null;
        reduced.sender.name = None;
        if let EventBody::Message(message) = &mut reduced.body {
            message.files.truncate(20);
        }
        fits(&reduced)
    })
}
