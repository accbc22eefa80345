//! Fakes of all platforms, with one direct chat per conversation.

use clap::ValueEnum;
use deerflow_chat_platforms::common::{Calls, Faults};
use deerflow_chat_platforms::dingtalk::{
    CLIENT_ID, CLIENT_SECRET, DingTalkFake, DingTalkOptions, TEMPLATE,
};
use deerflow_chat_platforms::discord::{DiscordFake, DiscordOptions};
use deerflow_chat_platforms::feishu::{FeishuFake, FeishuOptions};
use deerflow_chat_platforms::slack::{SlackFake, SlackOptions};
use deerflow_chat_platforms::telegram::{TelegramFake, TelegramOptions};
use deerflow_chat_platforms::wecom::{WeComFake, WeComOptions};

/// Tokens and secrets of the bots; that of DingTalk is a constant of its fake.
pub(crate) const SECRETS: [&str; 6] = [
    "canary-telegram-token",
    "xoxb-canary-slack",
    "xapp-canary-slack",
    "canary-discord-token",
    "canary-feishu-secret",
    "canary-wecom-secret",
];

/// Platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
#[value(rename_all = "lower")]
pub(crate) enum PlatformName {
    /// Telegram.
    Telegram,
    /// Slack.
    Slack,
    /// Discord.
    Discord,
    /// Feishu.
    Feishu,
    /// DingTalk.
    DingTalk,
    /// WeCom.
    WeCom,
}

impl PlatformName {
    /// Returns the key in the configuration.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Telegram => "telegram",
            Self::Slack => "slack",
            Self::Discord => "discord",
            Self::Feishu => "feishu",
            Self::DingTalk => "dingtalk",
            Self::WeCom => "wecom",
        }
    }
}

/// Running fakes.
#[derive(Debug)]
pub(crate) struct Platforms {
    pub(crate) telegram: TelegramFake,
    pub(crate) slack: SlackFake,
    pub(crate) discord: DiscordFake,
    pub(crate) feishu: FeishuFake,
    pub(crate) dingtalk: DingTalkFake,
    pub(crate) wecom: WeComFake,
    /// `true` if DingTalk has a template of cards, so that answers are streamed.
    pub(crate) cards: bool,
}

impl Platforms {
    /// Starts all fakes, which enforce rate limits if `rate_limits` is set.
    pub(crate) async fn start(rate_limits: bool) -> anyhow::Result<Self> {
        let (mut telegram, mut slack, mut discord) = (
            TelegramOptions::default(),
            SlackOptions::default(),
            DiscordOptions::default(),
        );
        let (mut feishu, mut dingtalk, mut wecom) = (
            FeishuOptions::default(),
            DingTalkOptions::default(),
            WeComOptions::default(),
        );
        telegram.token = format!("123456:{}", SECRETS[0]);
        SECRETS[1].clone_into(&mut slack.bot_token);
        SECRETS[2].clone_into(&mut slack.app_token);
        SECRETS[3].clone_into(&mut discord.token);
        SECRETS[4].clone_into(&mut feishu.app_secret);
        SECRETS[5].clone_into(&mut wecom.secret);
        telegram.rate_limits = rate_limits;
        slack.rate_limits = rate_limits;
        discord.rate_limits = rate_limits;
        feishu.rate_limits = rate_limits;
        dingtalk.rate_limits = rate_limits;
        wecom.rate_limits = rate_limits;
        Ok(Self {
            telegram: TelegramFake::start(telegram).await?,
            slack: SlackFake::start(slack).await?,
            discord: DiscordFake::start(discord).await?,
            feishu: FeishuFake::start(feishu).await?,
            dingtalk: DingTalkFake::start(dingtalk).await?,
            wecom: WeComFake::start(wecom).await?,
            cards: true,
        })
    }

    /// Returns the section `channels` with these bots and further lines of each channel.
    pub(crate) fn config(&self, names: &[PlatformName], more: &str) -> String {
        let mut config = "channels:\n".to_owned();
        for name in names {
            config.push_str(&format!("  {}:\n    enabled: true\n", name.key()));
            for (key, value) in self.settings(*name) {
                config.push_str(&format!("    {key}: '{value}'\n"));
            }
            config.push_str(more);
        }
        config
    }

    fn settings(&self, name: PlatformName) -> Vec<(&'static str, String)> {
        match name {
            PlatformName::Telegram => vec![
                ("bot_token", self.telegram.token().to_owned()),
                ("api_base", self.telegram.base()),
            ],
            PlatformName::Slack => vec![
                ("bot_token", SECRETS[1].to_owned()),
                ("app_token", SECRETS[2].to_owned()),
                ("api_base", self.slack.api_base()),
            ],
            PlatformName::Discord => vec![
                ("bot_token", SECRETS[3].to_owned()),
                ("api_base", self.discord.api_base()),
            ],
            PlatformName::Feishu => vec![
                ("app_id", FeishuOptions::default().app_id),
                ("app_secret", SECRETS[4].to_owned()),
                ("domain", self.feishu.base()),
            ],
            PlatformName::DingTalk => vec![
                ("client_id", CLIENT_ID.to_owned()),
                ("client_secret", CLIENT_SECRET.to_owned()),
                ("api_base", self.dingtalk.base()),
                (
                    "card_template_id",
                    (if self.cards { TEMPLATE } else { "" }).to_owned(),
                ),
            ],
            PlatformName::WeCom => vec![
                ("bot_id", WeComOptions::default().bot_id),
                ("bot_secret", SECRETS[5].to_owned()),
                ("ws_url", self.wecom.ws_url()),
            ],
        }
    }

    /// Returns the record of calls of a platform.
    pub(crate) fn calls(&self, name: PlatformName) -> &Calls {
        match name {
            PlatformName::Telegram => self.telegram.calls(),
            PlatformName::Slack => self.slack.calls(),
            PlatformName::Discord => self.discord.calls(),
            PlatformName::Feishu => self.feishu.calls(),
            PlatformName::DingTalk => self.dingtalk.calls(),
            PlatformName::WeCom => self.wecom.calls(),
        }
    }

    /// Returns the scripted faults of a platform.
    pub(crate) fn faults(&self, name: PlatformName) -> &Faults {
        match name {
            PlatformName::Telegram => self.telegram.faults(),
            PlatformName::Slack => self.slack.faults(),
            PlatformName::Discord => self.discord.faults(),
            PlatformName::Feishu => self.feishu.faults(),
            PlatformName::DingTalk => self.dingtalk.faults(),
            PlatformName::WeCom => self.wecom.faults(),
        }
    }
}
