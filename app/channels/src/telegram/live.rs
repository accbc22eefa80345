//! Live messages: drafts in private chats, edits elsewhere.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::markup::Part;
use crate::platform::{LiveReply, PlatformError};

use super::adapter::{MAX_TEXT, TelegramPlatform, topic_number};
use super::body::{Form, Style, chat_id, keyboard};
use super::failure::Problem;
use super::live_state::{LiveState, draft_id, preview};
use super::send::{message_id, next_form};

impl TelegramPlatform {
    /// Shows the text so far.
    pub(super) async fn show_live(
        &self,
        reply: &mut LiveReply,
        markdown: &str,
    ) -> Result<(), PlatformError> {
        let text = preview(markdown, MAX_TEXT);
        match LiveState::decode(&reply.state) {
            None if reply.target.is_direct() && !self.lacks_drafts.load(Ordering::Relaxed) => {
                let draft_id = draft_id(reply.key);
                self.show_draft(reply, draft_id, &text).await
            }
            Some(LiveState::Draft { draft_id }) => self.show_draft(reply, draft_id, &text).await,
            None => self.create(reply, &text).await,
            Some(LiveState::Edit { chat, message }) => {
                self.edit_live(reply, chat, message, &text).await
            }
        }
    }

    /// Shows a draft, or continues with a message that is edited.
    async fn show_draft(
        &self,
        reply: &mut LiveReply,
        draft_id: i64,
        text: &str,
    ) -> Result<(), PlatformError> {
        let body = draft_body(reply, draft_id, text);
        let Err(failure) = self.api.call("sendMessageDraft", &body).await else {
            if reply.state.is_null() {
                reply.state = LiveState::Draft { draft_id }.encode();
            }
            return Ok(());
        };
        match failure.problem {
            Problem::NotFound => {
                self.lacks_drafts.store(true, Ordering::Relaxed);
                tracing::info!("the telegram server has no drafts, editing messages instead");
            }
            Problem::Refused | Problem::TopicMissing => {
                tracing::debug!(error = %failure.description, "draft refused, editing a message");
            }
            _ => return Err(failure.into()),
        }
        self.create(reply, text).await
    }

    /// Sends the message that later updates edit.
    async fn create(&self, reply: &mut LiveReply, text: &str) -> Result<(), PlatformError> {
        let mut form = Form::first(&reply.target, Style::Plain);
        let part = plain_part(text);
        loop {
            let body = form.text(&part, stop_keyboard(reply));
            match self.api.call("sendMessage", &body).await {
                Ok(sent) => {
                    let message = message_id(&sent)?;
                    let chat = form.chat;
                    reply.state = LiveState::Edit { chat, message }.encode();
                    self.shown.record(reply.key, text);
                    return Ok(());
                }
                Err(failure) => form = next_form(&form, failure)?,
            }
        }
    }

    async fn edit_live(
        &self,
        reply: &mut LiveReply,
        chat: String,
        message: i64,
        text: &str,
    ) -> Result<(), PlatformError> {
        // An edit that changes nothing would count against the rate of the chat.
        if self.shown.shows(reply.key, text) {
            return Ok(());
        }
        let form = Form::first(&reply.target, Style::Plain).in_chat(chat);
        let body = form.edit(message, &plain_part(text), stop_keyboard(reply));
        match self.api.call("editMessageText", &body).await {
            Ok(_) => self.shown.record(reply.key, text),
            Err(failure) => match failure.problem {
                Problem::NotModified => self.shown.record(reply.key, text),
                Problem::NotEditable | Problem::Migrated(_) => {
                    tracing::debug!(error = %failure.description, "live message is gone");
                    return self.create(reply, text).await;
                }
                _ => return Err(failure.into()),
            },
        }
        Ok(())
    }
}

fn draft_body(reply: &LiveReply, draft_id: i64, text: &str) -> Value {
    let mut body = json!({
        "chat_id": chat_id(&reply.target.chat.id),
        "draft_id": draft_id,
        "text": text,
    });
    if let Some(topic) = topic_number(&reply.target) {
        body["message_thread_id"] = json!(topic);
    }
    if reply.stop.is_some() {
        body["can_stop"] = json!(true);
    }
    body
}

fn plain_part(text: &str) -> Part {
    Part {
        markup: String::new(),
        plain: text.to_owned(),
    }
}

fn stop_keyboard(reply: &LiveReply) -> Option<Value> {
    keyboard(reply.stop.as_slice())
}
