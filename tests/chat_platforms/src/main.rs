//! Serves one fake platform on a loopback port and prints its base address.

use clap::Parser;

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
    anyhow::bail!("unknown platform {}", arguments.platform)
}
