//! The scripted model as a program, for tests in other languages.

use std::io::Write as _;

use clap::Parser;
use deerflow_tests::scripted_openai::{Options, ScriptedOpenAi};

/// OpenAI-compatible model that follows the `[[directives]]` of the newest user message.
#[derive(Parser)]
struct Arguments {
    /// Port on 127.0.0.1; 0 selects a free one and prints it.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Answer 400 to histories whose tool calls and results are not paired.
    #[arg(long)]
    strict: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Arguments { port, strict } = Arguments::parse();
    let model = ScriptedOpenAi::start(Options { port, strict }).await?;
    writeln!(std::io::stdout(), "scripted model on {}", model.base_url)?;
    tokio::signal::ctrl_c().await?;
    Ok(())
}
