//! Serves one fake platform on a loopback port and prints its base address.

use std::io::Write;

use clap::Parser;
use deerflow_chat_platforms::slack::{SlackFake, SlackOptions};
use deerflow_chat_platforms::telegram::{TelegramFake, TelegramOptions};

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
        "telegram" => {
            let fake = TelegramFake::start(TelegramOptions {
                port: arguments.port,
                rate_limits: !arguments.no_rate_limits,
                ..TelegramOptions::default()
            })
            .await?;
            serve(fake.base()).await
        }
        "slack" => {
            let fake = SlackFake::start(SlackOptions {
                port: arguments.port,
                rate_limits: !arguments.no_rate_limits,
                ..SlackOptions::default()
            })
            .await?;
            serve(fake.base()).await
        }
        other => anyhow::bail!("unknown platform {other}"),
    }
}

/// Prints the base address and waits for the end of the process.
async fn serve(base: String) -> anyhow::Result<()> {
    let mut output = std::io::stdout();
    writeln!(output, "{base}")?;
    output.flush()?;
    std::future::pending().await
}
