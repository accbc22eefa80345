//! Serves one fake platform on a loopback port and prints its base address.

use std::io::Write;

use clap::Parser;
use deerflow_chat_platforms::dingtalk::{DingTalkFake, DingTalkOptions};
use deerflow_chat_platforms::discord::{DiscordFake, DiscordOptions};

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
    let arguments = Arguments::parse();
    match arguments.platform.as_str() {
        "dingtalk" => {
            let options = DingTalkOptions {
                port: arguments.port,
                rate_limits: !arguments.no_rate_limits,
                ..DingTalkOptions::default()
            };
            let fake = DingTalkFake::start(options).await?;
            serve(&fake.base()).await
        }
        "discord" => {
            let options = DiscordOptions {
                port: arguments.port,
                rate_limits: !arguments.no_rate_limits,
                ..DiscordOptions::default()
            };
            let fake = DiscordFake::start(options).await?;
            serve(&fake.base()).await
        }
        unknown => anyhow::bail!("unknown platform {unknown}"),
    }
}

/// Prints the base address and runs until the process is killed.
async fn serve(base: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{base}")?;
    std::future::pending().await
}
