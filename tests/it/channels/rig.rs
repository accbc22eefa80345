//! Gateway with a bot on a fake of Telegram.

use deerflow_chat_platforms::telegram::{TelegramFake, TelegramOptions};
use deerflow_tests::gateway::{AUTH_DISABLED, GatewayOptions, GatewayProcess, deerflow_binary};

/// Gateway and platform of one test.
#[derive(Debug)]
pub(super) struct ChannelRig {
    pub(super) gateway: GatewayProcess,
    pub(super) telegram: TelegramFake,
}

/// Variable with the token of the bot.
const TOKEN: &str = "TELEGRAM_TEST_TOKEN";

impl ChannelRig {
    /// Starts a gateway with the scripted model and this platform. `settings` are lines of
    /// `channels.telegram`.
    pub(super) async fn start(options: TelegramOptions, settings: &str) -> Self {
        let telegram = TelegramFake::start(options).await.expect("fake");
        let config = format!(
            "config_version: 34
models:
  - {{name: scripted, use: scripted, model: scripted}}
runs: {{shutdown_grace_seconds: 1}}
channels:
  telegram:
    enabled: true
    bot_token: ${TOKEN}
    api_base: {}
{settings}",
            telegram.base()
        );
        let mut options = GatewayOptions::new(deerflow_binary().expect("binary"), config);
        options.env = vec![
            (AUTH_DISABLED.0.to_owned(), AUTH_DISABLED.1.to_owned()),
            (TOKEN.to_owned(), telegram.token().to_owned()),
        ];
        let gateway = GatewayProcess::launch(options).await.expect("gateway");
        Self { gateway, telegram }
    }

    /// Waits until a chat has this number of answers and returns their texts.
    pub(super) async fn answers(&self, chat: i64, count: usize) -> Vec<String> {
        self.telegram
            .wait_for_answers(chat, |answers| {
                (answers.len() >= count)
                    .then(|| answers.iter().map(|answer| answer.text.clone()).collect())
            })
            .await
    }
}
