//! The adapter of one bot.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use harness::clock::Clock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::markup::Dialect;
use crate::platform::{
    Abilities, ChatKind, CommandHelp, Content, Delivery, EventSink, FileBody, FileLimits,
    GroupConversations, Identity, IncomingFile, LengthUnit, LivePacing, LiveReply, OutgoingMessage,
    Platform, PlatformError, Rates, Receipt, Sent, Target, TextLimit,
};

use super::api::BotApi;
use super::body::{Style, chat_id};
use super::poll::{Poller, get_me};
use super::shown::ShownTexts;

/// Maximum length of a text in UTF-16 units.
pub(super) const MAX_TEXT: usize = 4096;
/// Maximum size of a received file in bytes.
pub(super) const MAX_RECEIVED: u64 = 20 * 1024 * 1024;
/// Maximum size of a sent file in bytes.
pub(super) const MAX_SENT: u64 = 50 * 1024 * 1024;
/// Maximum length of the answer to a press, in characters.
const MAX_PRESS_ANSWER: usize = 200;
/// Maximum length of a command's description, in characters.
const MAX_DESCRIPTION: usize = 256;

/// One bot on Telegram.
#[derive(Debug)]
pub struct TelegramPlatform {
    pub(super) api: BotApi,
    pub(super) rich_messages: bool,
    /// Set when the server turned out not to have drafts.
    pub(super) lacks_drafts: AtomicBool,
    pub(super) shown: ShownTexts,
    clock: Arc<dyn Clock>,
    abilities: Abilities,
}

impl TelegramPlatform {
    /// Creates the adapter.
    pub(super) fn new(api: BotApi, rich_messages: bool, clock: Arc<dyn Clock>) -> Self {
        Self {
            api,
            rich_messages,
            lacks_drafts: AtomicBool::new(false),
            shown: ShownTexts::default(),
            clock,
            abilities: abilities(),
        }
    }

    /// Returns the style in which final texts are tried first.
    pub(super) fn final_style(&self) -> Style {
        if self.rich_messages {
            Style::Rich
        } else {
            Style::Html
        }
    }
}

fn abilities() -> Abilities {
    Abilities {
        dialect: Dialect::TelegramHtml,
        text: TextLimit {
            unit: LengthUnit::Utf16,
            max: MAX_TEXT,
        },
        live: Some(LivePacing {
            direct: Duration::from_millis(1500),
            group: Duration::from_secs(4),
            keep_alive: Some(Duration::from_secs(15)),
        }),
        rates: Rates {
            // Below the limit of 30, because answers to presses do not count.
            account_per_second: 28,
            chat_interval: Duration::from_millis(1050),
            group_per_minute: Some(18),
            counts_signs: true,
        },
        files: Some(FileLimits {
            receive: MAX_RECEIVED,
            send: MAX_SENT,
        }),
        buttons: true,
        typing: Some(Duration::from_secs(4)),
        groups: GroupConversations::ReplyChain,
        needs_connection: false,
        redelivers: true,
    }
}

#[async_trait]
impl Platform for TelegramPlatform {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    async fn identify(&self) -> Result<Identity, PlatformError> {
        let me = get_me(&self.api).await?;
        let mut warnings = Vec::new();
        if !me.reads_groups {
            warnings.push(
                "privacy mode is on: in groups the bot receives commands, mentions and replies \
                 to it only; to change that, send /setprivacy to BotFather, disable it, then \
                 remove the bot from its groups and add it again"
                    .to_owned(),
            );
        }
        Ok(Identity {
            account: me.id.to_string(),
            name: if me.username.is_empty() {
                me.id.to_string()
            } else {
                format!("@{}", me.username)
            },
            warnings,
        })
    }

    async fn register_commands(&self, commands: &[CommandHelp]) -> Result<(), PlatformError> {
        let commands: Vec<Value> = commands
            .iter()
            .map(|command| {
                let description: String =
                    command.description.chars().take(MAX_DESCRIPTION).collect();
                json!({"command": command.name, "description": description})
            })
            .collect();
        let body = json!({"commands": commands});
        self.api.call("setMyCommands", &body).await?;
        Ok(())
    }

    async fn listen(
        &self,
        sink: &dyn EventSink,
        cursor: Option<String>,
        stop: CancellationToken,
    ) -> Result<(), PlatformError> {
        let poller = Poller {
            api: &self.api,
            clock: self.clock.as_ref(),
            sink,
        };
        poller.run(cursor, stop).await
    }

    async fn send(
        &self,
        message: &OutgoingMessage,
        file: Option<FileBody>,
        _delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError> {
        let target = &message.target;
        let id = match &message.content {
            Content::Text(part) => self.send_text(target, part, &[], &message.live).await?,
            Content::Buttons { text, buttons } => {
                self.send_text(target, text, buttons, &message.live).await?
            }
            Content::File { path, .. } => {
                let file = file.ok_or_else(|| {
                    PlatformError::Refused(format!("the file {path} was not read"))
                })?;
                self.send_file(target, &file).await?
            }
            Content::TextFile { name, text } => {
                let file = FileBody {
                    name: name.clone(),
                    media_type: "text/plain; charset=utf-8".to_owned(),
                    bytes: Bytes::from(text.clone()),
                };
                self.send_file(target, &file).await?
            }
        };
        Ok(Sent {
            ids: vec![id.to_string()],
        })
    }

    async fn update_live(
        &self,
        reply: &mut LiveReply,
        markdown: &str,
    ) -> Result<(), PlatformError> {
        self.show_live(reply, markdown).await
    }

    async fn show(&self, target: &Target, receipt: Receipt) -> Result<(), PlatformError> {
        match (receipt, &target.reply_to) {
            (Receipt::Working, _) => {
                let mut body = json!({"chat_id": chat_id(&target.chat.id), "action": "typing"});
                if let Some(topic) = topic_number(target) {
                    body["message_thread_id"] = json!(topic);
                }
                self.api.call("sendChatAction", &body).await?;
            }
            // In groups the rate is too low for signs.
            (Receipt::Received, Some(message)) if target.chat.kind == ChatKind::Direct => {
                let Ok(message) = message.parse::<i64>() else {
                    return Ok(());
                };
                let body = json!({
                    "chat_id": chat_id(&target.chat.id),
                    "message_id": message,
                    "reaction": [{"type": "emoji", "emoji": "👀"}],
                });
                self.api.call("setMessageReaction", &body).await?;
            }
            (Receipt::Received | Receipt::Done | Receipt::Failed, _) => {}
        }
        Ok(())
    }

    async fn confirm_press(&self, target: &Target, text: &str) -> Result<(), PlatformError> {
        let Some(press) = target.context["callback"].as_str() else {
            return Ok(());
        };
        let mut body = json!({"callback_query_id": press});
        if !text.is_empty() {
            body["text"] = json!(text.chars().take(MAX_PRESS_ANSWER).collect::<String>());
        }
        self.api.call("answerCallbackQuery", &body).await?;
        Ok(())
    }

    async fn download(&self, file: &IncomingFile, max: u64) -> Result<Bytes, PlatformError> {
        self.download_file(file, max).await
    }
}

/// Returns the topic of a destination as a number.
pub(super) fn topic_number(target: &Target) -> Option<i64> {
    target.topic.as_deref().and_then(|topic| topic.parse().ok())
}
