//! Construction of outbox rows.

use deerflow_domain::channels::NewOutgoing;
use serde_json::Value;
use uuid::Uuid;

use crate::bot::{ActiveTurn, Bot};
use crate::markup::{Part, parts};
use crate::platform::{Button, Content, OutgoingMessage, Target};
use crate::words;

/// Number of parts beyond which a text is sent as a file.
const MAX_PARTS: usize = 40;

/// Returns the reply of an answer that was stopped before its run.
pub(super) fn stopped_before_run<'a>(bot: &'a Bot, active: &'a ActiveTurn) -> Replies<'a> {
    let target = active.target.clone();
    let mut replies = Replies::new(bot, active.id(), &active.conversation, target);
    replies.text("answer", words::STOPPED);
    replies
}

/// Replies to one cause. Their ids follow from the cause, a purpose and a number, so that a
/// repetition stores nothing twice.
#[derive(Debug)]
pub(super) struct Replies<'a> {
    bot: &'a Bot,
    cause: Uuid,
    conversation: &'a str,
    target: Target,
    rows: Vec<(String, OutgoingMessage)>,
}

impl<'a> Replies<'a> {
    pub(super) fn new(bot: &'a Bot, cause: Uuid, conversation: &'a str, target: Target) -> Self {
        Self {
            bot,
            cause,
            conversation,
            target,
            rows: Vec::new(),
        }
    }

    /// Adds a text in as many parts as it needs.
    pub(super) fn text(&mut self, purpose: &str, markdown: &str) {
        self.answer(purpose, markdown, Vec::new(), Value::Null);
    }

    /// Adds a text whose first part completes a live message, and whose last part has buttons.
    pub(super) fn answer(
        &mut self,
        purpose: &str,
        markdown: &str,
        buttons: Vec<Button>,
        live: Value,
    ) {
        let abilities = self.bot.platform.abilities();
        let mut texts = parts(markdown, abilities.dialect, abilities.text);
        let as_file = texts.len() > MAX_PARTS && abilities.files.is_some();
        if as_file {
            texts = parts(words::ANSWER_AS_FILE, abilities.dialect, abilities.text);
        }
        if texts.is_empty() {
            texts.push(Part {
                markup: "\u{2026}".to_owned(),
                plain: "\u{2026}".to_owned(),
            });
        }
        let last = texts.len() - 1;
        for (at, text) in texts.into_iter().enumerate() {
            let content = if at == last && !buttons.is_empty() && abilities.buttons {
                Content::Buttons {
                    text,
                    buttons: buttons.clone(),
                }
            } else {
                Content::Text(text)
            };
            let live = if at == 0 { live.clone() } else { Value::Null };
            self.push(purpose, content, live);
        }
        if as_file {
            let content = Content::TextFile {
                name: words::ANSWER_FILE.to_owned(),
                text: markdown.to_owned(),
            };
            self.push(purpose, content, Value::Null);
        }
    }

    /// Adds a file of the thread's outputs.
    pub(super) fn file(&mut self, user_id: &str, thread_id: &str, path: &str) {
        let content = Content::File {
            user_id: user_id.to_owned(),
            thread_id: thread_id.to_owned(),
            path: path.to_owned(),
        };
        self.push("file", content, Value::Null);
    }

    fn push(&mut self, purpose: &str, content: Content, live: Value) {
        let message = OutgoingMessage {
            target: self.target.clone(),
            content,
            live,
            last: false,
        };
        self.rows.push((purpose.to_owned(), message));
    }

    /// Returns the rows; the last one is marked.
    pub(super) fn finish(mut self) -> Vec<NewOutgoing> {
        if let Some((_, last)) = self.rows.last_mut() {
            last.last = true;
        }
        let rows = std::mem::take(&mut self.rows);
        rows.into_iter()
            .enumerate()
            .filter_map(|(at, (purpose, message))| {
                let part = u32::try_from(at).ok()?;
                Some(NewOutgoing {
                    id: Uuid::new_v5(&self.cause, format!("{purpose}:{part}").as_bytes()),
                    account: self.bot.claim.account.clone(),
                    chat: message.target.chat.id.clone(),
                    conversation: self.conversation.to_owned(),
                    part,
                    body: serde_json::to_value(&message).ok()?,
                })
            })
            .collect()
    }
}
