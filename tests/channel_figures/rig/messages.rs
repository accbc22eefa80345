//! Messages of people, and what they see of the bot.

use deerflow_chat_platforms::dingtalk::{PersonMessage as DingTalkMessage, WrittenBody};
use deerflow_chat_platforms::discord::{BOT, PersonMessage as DiscordMessage};
use deerflow_chat_platforms::feishu::FeishuIncoming;
use deerflow_chat_platforms::wecom::ShownKind;

use super::platforms::{PlatformName, Platforms};

/// First id of a direct chat on Telegram and Discord.
const FIRST_CHAT: u64 = 5_000;

impl PlatformName {
    /// Returns the id of the direct chat of a conversation.
    pub(crate) fn chat(self, conversation: usize) -> String {
        match self {
            Self::Telegram | Self::Discord => (FIRST_CHAT + conversation as u64).to_string(),
            Self::Slack => format!("DU{conversation}"),
            Self::Feishu => format!("oc_{conversation}"),
            Self::DingTalk | Self::WeCom => format!("u{conversation}"),
        }
    }
}

impl Platforms {
    /// Writes a text in a direct chat; `false` if the platform cannot deliver it now.
    pub(crate) fn say(&self, name: PlatformName, conversation: usize, text: &str) -> bool {
        let number = FIRST_CHAT + conversation as u64;
        match name {
            PlatformName::Telegram => drop(self.telegram.say(number as i64, number as i64, text)),
            PlatformName::Slack => drop(self.slack.say_dm(&format!("U{conversation}"), text)),
            PlatformName::Discord => drop(self.discord.controls().write(&DiscordMessage {
                channel: number,
                in_guild: false,
                author: 100_000 + number,
                text: text.to_owned(),
                ..DiscordMessage::default()
            })),
            PlatformName::Feishu => drop(self.feishu.write(FeishuIncoming::direct(
                &name.chat(conversation),
                &format!("ou_{conversation}"),
                text,
            ))),
            PlatformName::DingTalk => drop(self.dingtalk.controls().write(&DingTalkMessage {
                staff: name.chat(conversation),
                group: None,
                body: WrittenBody::Text(text.to_owned()),
            })),
            PlatformName::WeCom => {
                return self
                    .wecom
                    .say(&name.chat(conversation), None, text)
                    .is_some();
            }
        }
        true
    }

    /// Returns the texts of the bot in a direct chat, in order, as the platform shows them.
    pub(crate) fn texts(&self, name: PlatformName, conversation: usize) -> Vec<String> {
        let chat = name.chat(conversation);
        match name {
            PlatformName::Telegram => self
                .telegram
                .answers(FIRST_CHAT as i64 + conversation as i64)
                .into_iter()
                .filter(|message| message.file.is_none())
                .map(|message| message.text)
                .collect(),
            PlatformName::Slack => self
                .slack
                .answers(&chat)
                .into_iter()
                .filter(|message| message.files.is_empty() && !message.streaming())
                .map(|message| message.text)
                .collect(),
            PlatformName::Discord => self.discord_texts(&chat),
            PlatformName::Feishu => self
                .feishu
                .sent()
                .into_iter()
                .filter(|message| message.chat_id == chat && message.msg_type != "file")
                .map(|message| self.feishu.visible(&message.message_id))
                .collect(),
            PlatformName::DingTalk => self.dingtalk_texts(&chat),
            PlatformName::WeCom => self
                .wecom
                .shown()
                .into_iter()
                .filter(|shown| {
                    shown.chat == chat && shown.finished && shown.kind != ShownKind::File
                })
                .map(|shown| shown.content)
                .collect(),
        }
    }

    fn discord_texts(&self, chat: &str) -> Vec<String> {
        let bot = BOT.to_string();
        let messages = self.discord.controls().messages();
        messages
            .iter()
            .filter(|message| message["channel_id"] == chat && message["author"]["id"] == bot)
            .filter_map(|message| message["content"].as_str())
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Returns completed cards before other messages: the fake does not know their common order.
    fn dingtalk_texts(&self, chat: &str) -> Vec<String> {
        let space = format!("dtv1.card//IM_ROBOT.{chat}");
        let cards = self.dingtalk.controls().cards().into_iter();
        let cards = cards.filter(|(of, _, is_final)| *of == space && *is_final);
        let texts = cards.map(|(_, text, _)| text);
        texts.chain(self.dingtalk.controls().texts(chat)).collect()
    }
}
