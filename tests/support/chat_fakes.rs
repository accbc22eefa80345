//! Fakes of all chat platforms with one bot each, for tests over every platform.

use std::io;
use std::time::Duration;

use deerflow_chat_platforms::common::{Calls, Fault, Faults};
use deerflow_chat_platforms::dingtalk::{
    self, CLIENT_ID, CLIENT_SECRET, DingTalkFake, DingTalkOptions,
};
use deerflow_chat_platforms::discord::{self, DiscordFake, DiscordOptions};
use deerflow_chat_platforms::feishu::{FeishuFake, FeishuIncoming, FeishuOptions};
use deerflow_chat_platforms::slack::{SlackFake, SlackOptions};
use deerflow_chat_platforms::telegram::{TelegramFake, TelegramOptions};
use deerflow_chat_platforms::wecom::{WeComFake, WeComOptions};

/// Platforms, by their keys in `channels`.
pub const PLATFORMS: [&str; 6] = [
    "telegram", "slack", "discord", "feishu", "dingtalk", "wecom",
];

/// Id of the bot of the fake of Discord.
const DISCORD_BOT: u64 = 1;
/// Added to the number of a chat for the ids of its channel and of its person on Discord.
const DISCORD_CHANNEL: u64 = 5_000;
const DISCORD_PERSON: u64 = 70_000;
/// Delays after which the fakes deliver an unacknowledged message again, if deaths are tested.
const REDELIVERY: [u64; 7] = [1, 5, 10, 15, 30, 60, 120];

/// Running fakes. They stop when this is dropped.
///
/// Chats have numbers. Each is a direct chat of the bot with a person of its own.
#[derive(Debug)]
pub struct ChatFakes {
    telegram: TelegramFake,
    slack: SlackFake,
    discord: DiscordFake,
    feishu: FeishuFake,
    dingtalk: DingTalkFake,
    wecom: WeComFake,
}

impl ChatFakes {
    /// Starts fakes that enforce the limits of their platforms.
    ///
    /// # Errors
    /// A port is not available.
    pub async fn start() -> io::Result<Self> {
        Ok(Self {
            telegram: TelegramFake::start(TelegramOptions::default()).await?,
            slack: SlackFake::start(SlackOptions::default()).await?,
            discord: DiscordFake::start(DiscordOptions::default()).await?,
            feishu: FeishuFake::start_at(0, FeishuOptions::default()).await?,
            dingtalk: DingTalkFake::start(DingTalkOptions::default()).await?,
            wecom: WeComFake::start(WeComOptions::default()).await?,
        })
    }

    /// Starts fakes for tests of deaths: they redeliver within seconds whatever a bot did not
    /// acknowledge, that of WeCom too, and they limit no rates.
    ///
    /// # Errors
    /// A port is not available.
    pub async fn redelivering() -> io::Result<Self> {
        let redelivery = REDELIVERY.map(Duration::from_secs).to_vec();
        let rate_limits = false;
        let telegram = TelegramOptions {
            rate_limits,
            ..TelegramOptions::default()
        };
        let slack = SlackOptions {
            rate_limits,
            redelivery: redelivery.clone(),
            ..SlackOptions::default()
        };
        let discord = DiscordOptions {
            rate_limits,
            identifies: 100_000,
            ..DiscordOptions::default()
        };
        let feishu = FeishuOptions {
            rate_limits,
            redelivery,
            ..FeishuOptions::default()
        };
        let dingtalk = DingTalkOptions {
            rate_limits,
            redelivery: Duration::from_secs(5),
            ..DingTalkOptions::default()
        };
        let wecom = WeComOptions {
            rate_limits,
            redelivery: Duration::from_secs(120),
            ..WeComOptions::default()
        };
        Ok(Self {
            telegram: TelegramFake::start(telegram).await?,
            slack: SlackFake::start(slack).await?,
            discord: DiscordFake::start(discord).await?,
            feishu: FeishuFake::start_at(0, feishu).await?,
            dingtalk: DingTalkFake::start(dingtalk).await?,
            wecom: WeComFake::start(wecom).await?,
        })
    }

    /// Returns the section `channels` of a configuration that connects a bot with each platform.
    /// `common` are further keys of every channel, such as `mention_only: true`.
    #[must_use]
    pub fn section(&self, common: &str) -> String {
        let (slack, feishu, wecom) = (
            SlackOptions::default(),
            FeishuOptions::default(),
            WeComOptions::default(),
        );
        let channels = [
            format!(
                "telegram: {{bot_token: '{}', api_base: '{}'",
                self.telegram.token(),
                self.telegram.base()
            ),
            format!(
                "slack: {{bot_token: '{}', app_token: '{}', api_base: '{}'",
                slack.bot_token,
                slack.app_token,
                self.slack.api_base()
            ),
            format!(
                "discord: {{bot_token: '{}', api_base: '{}'",
                DiscordOptions::default().token,
                self.discord.api_base()
            ),
            format!(
                "feishu: {{app_id: '{}', app_secret: '{}', domain: '{}'",
                feishu.app_id,
                feishu.app_secret,
                self.feishu.base()
            ),
            format!(
                "dingtalk: {{client_id: '{CLIENT_ID}', client_secret: '{CLIENT_SECRET}', api_base: '{}'",
                self.dingtalk.base()
            ),
            format!(
                "wecom: {{bot_id: '{}', bot_secret: '{}', ws_url: '{}'",
                wecom.bot_id,
                wecom.secret,
                self.wecom.ws_url()
            ),
        ];
        let separator = if common.is_empty() { "" } else { ", " };
        let lines =
            channels.map(|channel| format!("  {channel}, enabled: true{separator}{common}}}\n"));
        format!("channels:\n{}", lines.concat())
    }

    /// Writes a text in a chat. Returns `false` if the platform cannot deliver it now and will not
    /// deliver it later.
    pub fn say(&self, platform: &str, chat: u32, text: &str) -> bool {
        match platform {
            "telegram" => drop(self.telegram.say(chat.into(), chat.into(), text)),
            "slack" => drop(self.slack.say_dm(&format!("U{chat}"), text)),
            "discord" => drop(self.discord.controls().write(&discord::PersonMessage {
                channel: DISCORD_CHANNEL + u64::from(chat),
                in_guild: false,
                author: DISCORD_PERSON + u64::from(chat),
                text: text.to_owned(),
                ..discord::PersonMessage::default()
            })),
            "feishu" => {
                let (room, person) = (format!("oc_{chat}"), format!("ou_{chat}"));
                self.feishu
                    .write(FeishuIncoming::direct(&room, &person, text));
            }
            "dingtalk" => {
                let message = dingtalk::PersonMessage {
                    staff: format!("u{chat}"),
                    ..dingtalk::PersonMessage::direct(text)
                };
                self.dingtalk.controls().write(&message);
            }
            _ => {
                let said = self.wecom.say(&format!("u{chat}"), None, text);
                return said.is_some() || self.wecom.redelivers();
            }
        }
        true
    }

    /// Returns the platform's id of a chat.
    #[must_use]
    pub fn chat_id(&self, platform: &str, chat: u32) -> String {
        match platform {
            "telegram" => chat.to_string(),
            "slack" => format!("DU{chat}"),
            "discord" => (DISCORD_CHANNEL + u64::from(chat)).to_string(),
            "feishu" => format!("oc_{chat}"),
            _ => format!("u{chat}"),
        }
    }

    /// Returns the messages of the bot in the chats up to a number, as (chat, text). A stream of
    /// WeCom counts when it is finished: after the end of its connection no bot can finish it.
    #[must_use]
    pub fn answers(&self, platform: &str, chats: u32) -> Vec<(u32, String)> {
        let number = |id: &str, prefix: &str| id.strip_prefix(prefix)?.parse::<u32>().ok();
        match platform {
            "telegram" => (1..=chats)
                .flat_map(|chat| {
                    let answers = self.telegram.answers(chat.into());
                    answers.into_iter().map(move |answer| (chat, answer.text))
                })
                .collect(),
            "slack" => (1..=chats)
                .flat_map(|chat| {
                    let answers = self.slack.answers(&format!("DU{chat}"));
                    answers.into_iter().map(move |answer| (chat, answer.text))
                })
                .collect(),
            "discord" => {
                let bot = DISCORD_BOT.to_string();
                let messages = self.discord.controls().messages();
                let answers = messages
                    .iter()
                    .filter(|message| message["author"]["id"] == bot);
                answers
                    .filter_map(|message| {
                        let channel: u64 = message["channel_id"].as_str()?.parse().ok()?;
                        let chat = u32::try_from(channel.checked_sub(DISCORD_CHANNEL)?).ok()?;
                        Some((chat, message["content"].as_str()?.to_owned()))
                    })
                    .collect()
            }
            "feishu" => {
                let sent = self.feishu.sent().into_iter();
                sent.filter_map(|message| {
                    let chat = number(&message.chat_id, "oc_")?;
                    Some((chat, self.feishu.visible(&message.message_id)))
                })
                .collect()
            }
            "dingtalk" => {
                let sent = self.dingtalk.controls().sent().into_iter();
                sent.filter_map(|(to, _, parameters)| {
                    Some((number(&to, "u")?, parameters["text"].as_str()?.to_owned()))
                })
                .collect()
            }
            _ => {
                let shown = self.wecom.shown().into_iter();
                shown
                    .filter(|shown| shown.finished)
                    .filter_map(|shown| Some((number(&shown.chat, "u")?, shown.content)))
                    .collect()
            }
        }
    }

    /// Swallows the replies of the next calls that send a new message: the platform performs them,
    /// and the bot gets no answer.
    pub fn lose_replies(&self, platform: &str, calls: usize) {
        let faults = std::iter::repeat_n(Fault::LoseReply, calls);
        self.faults(platform)
            .script(sending_method(platform), faults);
    }

    /// Returns the number of replies that will be swallowed.
    #[must_use]
    pub fn replies_to_lose(&self, platform: &str) -> usize {
        self.faults(platform).remaining(sending_method(platform))
    }

    /// Forgets the recorded calls and the scripted faults.
    pub fn forget(&self) {
        for platform in PLATFORMS {
            self.calls(platform).clear();
            self.faults(platform).clear();
        }
    }

    /// Returns the record of the calls that a platform received.
    #[must_use]
    pub fn calls(&self, platform: &str) -> &Calls {
        match platform {
            "telegram" => self.telegram.calls(),
            "slack" => self.slack.calls(),
            "discord" => self.discord.calls(),
            "feishu" => self.feishu.calls(),
            "dingtalk" => self.dingtalk.calls(),
            _ => self.wecom.calls(),
        }
    }

    fn faults(&self, platform: &str) -> &Faults {
        match platform {
            "telegram" => self.telegram.faults(),
            "slack" => self.slack.faults(),
            "discord" => self.discord.faults(),
            "feishu" => self.feishu.faults(),
            "dingtalk" => self.dingtalk.faults(),
            _ => self.wecom.faults(),
        }
    }
}

/// Returns the name of the call that sends a new message.
fn sending_method(platform: &str) -> &'static str {
    match platform {
        "telegram" => "sendMessage",
        "slack" => "chat.postMessage",
        "discord" => "create_message",
        "feishu" => "POST im/v1/messages",
        "dingtalk" => "send_direct",
        _ => "aibot_send_msg",
    }
}
