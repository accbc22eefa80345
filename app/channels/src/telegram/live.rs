//! Live messages: drafts in private chats, edits elsewhere.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::markup::{Part, ending};
use crate::platform::{LiveReply, Platform, PlatformError};

use super::adapter::{TelegramPlatform, topic_number};
use super::body::{Form, Style, chat_id, keyboard};
use super::failure::{Failure, Problem};
use super::live_state::{LiveState, draft_id};
use super::send::{message_id, next_form};

impl TelegramPlatform {
    /// Shows the text so far.
    pub(super) async fn show_live(
        &self,
        reply: &mut LiveReply,
        markdown: &str,
    ) -> Result<(), PlatformError> {
        let abilities = self.abilities();
        let text = ending(markdown, abilities.dialect, abilities.text).unwrap_or_else(|| Part {
            markup: "…".to_owned(),
            plain: "…".to_owned(),
        });
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
        text: &Part,
    ) -> Result<(), PlatformError> {
        let mut sent = self.call_draft(reply, draft_id, text, Style::Html).await;
        if matches!(&sent, Err(failure) if failure.problem == Problem::BadMarkup) {
            sent = self.call_draft(reply, draft_id, text, Style::Plain).await;
        }
        let Err(failure) = sent else {
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

    async fn call_draft(
        &self,
        reply: &LiveReply,
        draft_id: i64,
        text: &Part,
        style: Style,
    ) -> Result<Value, Failure> {
        let body = draft_body(reply, draft_id, text, style);
        self.api.call("sendMessageDraft", &body).await
    }

    /// Sends the message that later updates edit.
    async fn create(&self, reply: &mut LiveReply, text: &Part) -> Result<(), PlatformError> {
        let mut form = Form::first(&reply.target, Style::Html);
        loop {
            let body = form.text(text, stop_keyboard(reply));
            match self.api.call("sendMessage", &body).await {
                Ok(sent) => {
                    let message = message_id(&sent)?;
                    let chat = form.chat;
                    reply.state = LiveState::Edit { chat, message }.encode();
                    self.shown.record(reply.key, &text.markup);
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
        text: &Part,
    ) -> Result<(), PlatformError> {
        // An edit that changes nothing would count against the rate of the chat.
        if self.shown.shows(reply.key, &text.markup) {
            return Ok(());
        }
        let mut form = Form::first(&reply.target, Style::Html).in_chat(chat);
        loop {
            let body = form.edit(message, text, stop_keyboard(reply));
            let Err(failure) = self.api.call("editMessageText", &body).await else {
                break;
            };
            match failure.problem {
                Problem::NotModified => break,
                Problem::NotEditable | Problem::Migrated(_) => {
                    tracing::debug!(error = %failure.description, "live message is gone");
                    return self.create(reply, text).await;
                }
                Problem::BadMarkup => form = next_form(&form, failure)?,
                _ => return Err(failure.into()),
            }
        }
        self.shown.record(reply.key, &text.markup);
        Ok(())
    }
}

fn draft_body(reply: &LiveReply, draft_id: i64, text: &Part, style: Style) -> Value {
    let mut body = json!({
        "chat_id": chat_id(&reply.target.chat.id),
        "draft_id": draft_id,
    });
    if style == Style::Plain {
        body["text"] = json!(text.plain);
    } else {
        body["text"] = json!(text.markup);
        body["parse_mode"] = json!("HTML");
    }
    if let Some(topic) = topic_number(&reply.target) {
        body["message_thread_id"] = json!(topic);
    }
    if reply.stop.is_some() {
        body["can_stop"] = json!(true);
    }
    body
}

fn stop_keyboard(reply: &LiveReply) -> Option<Value> {
    keyboard(reply.stop.as_slice())
}
