//! Serves one fake platform on a loopback port and prints its base address.

use std::io::Write;

use clap::Parser;
use deerflow_chat_platforms::feishu::{FeishuFake, FeishuOptions};

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
        "feishu" => {
            let options = FeishuOptions {
                rate_limits: !arguments.no_rate_limits,
                ..FeishuOptions::default()
            };
            let fake = FeishuFake::start_at(arguments.port, options).await?;
            serve(&fake.base()).await
        }
        other => anyhow::bail!("unknown platform {other}"),
    }
}

/// Prints the base address and waits for the end of the process.
async fn serve(base: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{base}")?;
    std::future::pending().await
}
