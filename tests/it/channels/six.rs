//! One gateway with a bot on each platform: the promises that hold for every platform.

use deerflow_chat_platforms::dingtalk::{
    self, CLIENT_ID, CLIENT_SECRET, DingTalkFake, DingTalkOptions, STAFF,
};
use deerflow_chat_platforms::discord::{DIRECT, DiscordFake, DiscordOptions};
use deerflow_chat_platforms::feishu::{FeishuFake, FeishuIncoming, FeishuOptions};
use deerflow_chat_platforms::slack::{SlackFake, SlackOptions};
use deerflow_chat_platforms::telegram::{TelegramFake, TelegramOptions};
use deerflow_chat_platforms::wecom::{WeComFake, WeComOptions};
use deerflow_tests::gateway::{AUTH_DISABLED, GatewayOptions, GatewayProcess, deerflow_binary};
use serde_json::Value;

use crate::rig::until;

/// Fakes of all platforms. Each has one person, who talks to the bot in a direct chat.
#[derive(Debug)]
struct Platforms {
    telegram: TelegramFake,
    slack: SlackFake,
    discord: DiscordFake,
    feishu: FeishuFake,
    dingtalk: DingTalkFake,
    wecom: WeComFake,
}

const NAMES: [&str; 6] = [
    "telegram", "slack", "discord", "feishu", "dingtalk", "wecom",
];

impl Platforms {
    async fn start() -> std::io::Result<Self> {
        Ok(Self {
            telegram: TelegramFake::start(TelegramOptions::default()).await?,
            slack: SlackFake::start(SlackOptions::default()).await?,
            discord: DiscordFake::start(DiscordOptions::default()).await?,
            feishu: FeishuFake::start_at(0, FeishuOptions::default()).await?,
            dingtalk: DingTalkFake::start(DingTalkOptions::default()).await?,
            wecom: WeComFake::start(WeComOptions::default()).await?,
        })
    }

    fn config(&self) -> String {
        let (slack, feishu, wecom) = (
            SlackOptions::default(),
            FeishuOptions::default(),
            WeComOptions::default(),
        );
        format!(
            "config_version: 34
models:
  - {{name: scripted, use: scripted, model: scripted}}
runs: {{shutdown_grace_seconds: 1}}
channels:
  telegram: {{enabled: true, bot_token: '{}', api_base: '{}'}}
  slack: {{enabled: true, bot_token: '{}', app_token: '{}', api_base: '{}'}}
  discord: {{enabled: true, bot_token: '{}', api_base: '{}'}}
  feishu: {{enabled: true, app_id: '{}', app_secret: '{}', domain: '{}'}}
  dingtalk: {{enabled: true, client_id: '{CLIENT_ID}', client_secret: '{CLIENT_SECRET}', api_base: '{}'}}
  wecom: {{enabled: true, bot_id: '{}', bot_secret: '{}', ws_url: '{}'}}
",
            self.telegram.token(),
            self.telegram.base(),
            slack.bot_token,
            slack.app_token,
            self.slack.api_base(),
            DiscordOptions::default().token,
            self.discord.api_base(),
            feishu.app_id,
            feishu.app_secret,
            self.feishu.base(),
            self.dingtalk.base(),
            wecom.bot_id,
            wecom.secret,
            self.wecom.ws_url(),
        )
    }

    /// Says a text on a platform; `false` if the platform cannot deliver it now.
    fn say(&self, platform: &str, text: &str) -> bool {
        match platform {
            "telegram" => drop(self.telegram.say(42, 42, text)),
            "slack" => drop(self.slack.say_dm("U1", text)),
            "discord" => drop(self.discord.controls().say(DIRECT, text)),
            "feishu" => drop(
                self.feishu
                    .write(FeishuIncoming::direct("oc_1", "ou_1", text)),
            ),
            "dingtalk" => drop(
                self.dingtalk
                    .controls()
                    .write(&dingtalk::PersonMessage::direct(text)),
            ),
            _ => return self.wecom.say("u1", None, text).is_some(),
        }
        true
    }

    /// Returns what the person sees of the bot on a platform, as texts or as JSON of a card.
    fn texts(&self, platform: &str) -> Vec<String> {
        match platform {
            "telegram" => self
                .telegram
                .answers(42)
                .into_iter()
                .map(|message| message.text)
                .collect(),
            "slack" => self
                .slack
                .answers("DU1")
                .into_iter()
                .map(|message| message.text)
                .collect(),
            "discord" => self.discord.controls().texts(DIRECT),
            "feishu" => {
                let messages = self
                    .feishu
                    .sent()
                    .into_iter()
                    .map(|message| message.content);
                let cards = self
                    .feishu
                    .cards()
                    .into_iter()
                    .map(|card| format!("{card:?}"));
                messages.chain(cards).collect()
            }
            "dingtalk" => self.dingtalk.controls().texts(STAFF),
            _ => self
                .wecom
                .shown()
                .into_iter()
                .map(|shown| shown.content)
                .collect(),
        }
    }

    fn count(&self, platform: &str, text: &str) -> usize {
        let texts = self.texts(platform);
        texts.iter().filter(|shown| shown.contains(text)).count()
    }

    /// Says a text on each platform and waits for the answers.
    async fn ask_all(&self, gateway: &GatewayProcess, word: &str) {
        for platform in NAMES {
            let said = until(platform, async || {
                self.say(platform, &format!("then say {word}."))
                    .then_some(())
            });
            said.await;
        }
        for platform in NAMES {
            let expected = format!("{word}.");
            let answered = until(platform, async || {
                (self.count(platform, &expected) > 0).then_some(())
            });
            if tokio::time::timeout(std::time::Duration::from_secs(25), answered)
                .await
                .is_err()
            {
                panic!(
                    "{platform} shows {:?}\n{}",
                    self.texts(platform),
                    gateway.logs()
                );
            }
        }
    }
}

async fn get(gateway: &GatewayProcess, path: &str) -> Value {
    let answer = reqwest::get(format!("{}{path}", gateway.base_url()))
        .await
        .expect("answer");
    answer.json().await.expect("JSON")
}

async fn start(platforms: &Platforms) -> GatewayProcess {
    let mut options = GatewayOptions::new(deerflow_binary().expect("binary"), platforms.config());
    options.env = vec![(AUTH_DISABLED.0.to_owned(), AUTH_DISABLED.1.to_owned())];
    let gateway = GatewayProcess::launch(options).await.expect("gateway");
    all_running(&gateway).await;
    gateway
}

async fn all_running(gateway: &GatewayProcess) {
    let running = until("all channels", async || {
        let status = get(gateway, "/api/channels/").await;
        NAMES
            .iter()
            .all(|name| status["channels"][name]["running"] == true)
            .then_some(())
    });
    running.await;
}

#[tokio::test]
async fn every_platform_is_answered_before_and_after_a_restart() {
    let platforms = Platforms::start().await.expect("fakes");
    let mut gateway = start(&platforms).await;
    platforms.ask_all(&gateway, "Hello").await;
    gateway.terminate().await.expect("stopped");
    gateway.restart().await.expect("started");
    all_running(&gateway).await;
    platforms.ask_all(&gateway, "Again").await;
    for platform in NAMES {
        // A card of Feishu is listed as a message and as a card.
        let most = if platform == "feishu" { 2 } else { 1 };
        for text in ["Hello.", "Again."] {
            let count = platforms.count(platform, text);
            assert!(
                (1..=most).contains(&count),
                "{platform}: {:?}",
                platforms.texts(platform)
            );
        }
    }
}

#[tokio::test]
async fn secrets_of_no_platform_appear_in_logs() {
    let platforms = Platforms::start().await.expect("fakes");
    let gateway = start(&platforms).await;
    platforms.ask_all(&gateway, "Hello").await;
    let logs = gateway.logs();
    let slack = SlackOptions::default();
    for secret in ["TEST-token_1", &slack.bot_token, &slack.app_token] {
        assert!(!logs.contains(secret), "{secret}\n{logs}");
    }
}
