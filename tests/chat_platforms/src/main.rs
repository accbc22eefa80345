//! Serves one fake platform on a loopback port and prints its base address.

use std::io::Write;

use clap::Parser;
use deerflow_chat_platforms::dingtalk::{DingTalkFake, DingTalkOptions};
use deerflow_chat_platforms::discord::{DiscordFake, DiscordOptions};
use deerflow_chat_platforms::feishu::{FeishuFake, FeishuOptions};
use deerflow_chat_platforms::slack::{SlackFake, SlackOptions};
use deerflow_chat_platforms::telegram::{TelegramFake, TelegramOptions};
use deerflow_chat_platforms::wecom::{WeComFake, WeComOptions};

/// Fake of a chat platform.
#[derive(Debug, Parser)]
struct Arguments {
    /// Platform: telegram, slack, feishu, discord, dingtalk or wecom.
    platform: String,
    /// Port; 0 selects a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Disables the enforcement of rate limits.
    #[arg(long)]
    no_rate_limits: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Arguments {
        platform,
        port,
        no_rate_limits,
    } = Arguments::parse();
    let rate_limits = !no_rate_limits;
    match platform.as_str() {
        "telegram" => {
            let options = TelegramOptions {
                port,
                rate_limits,
                ..TelegramOptions::default()
            };
            let fake = TelegramFake::start(options).await?;
            serve(&fake.base()).await
        }
        "slack" => {
            let options = SlackOptions {
                port,
                rate_limits,
                ..SlackOptions::default()
            };
            let fake = SlackFake::start(options).await?;
            serve(&fake.base()).await
        }
        "feishu" => {
            let options = FeishuOptions {
                rate_limits,
                ..FeishuOptions::default()
            };
            let fake = FeishuFake::start_at(port, options).await?;
            serve(&fake.base()).await
        }
        "discord" => {
            let options = DiscordOptions {
                port,
                rate_limits,
                ..DiscordOptions::default()
            };
            let fake = DiscordFake::start(options).await?;
            serve(&fake.base()).await
        }
        "dingtalk" => {
            let options = DingTalkOptions {
                port,
                rate_limits,
                ..DingTalkOptions::default()
            };
            let fake = DingTalkFake::start(options).await?;
            serve(&fake.base()).await
        }
        "wecom" => {
            let options = WeComOptions {
                port,
                rate_limits,
                ..WeComOptions::default()
            };
            let fake = WeComFake::start(options).await?;
            serve(&fake.base()).await
        }
        unknown => anyhow::bail!("unknown platform {unknown}"),
    }
}

/// Prints the base address and runs until the process is killed.
async fn serve(base: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout();
    writeln!(output, "{base}")?;
    output.flush()?;
    std::future::pending().await
}
