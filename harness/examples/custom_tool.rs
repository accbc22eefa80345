//! An agent with a custom tool, in this process, without a server or an account: `cargo run -p
//! deerflow-harness --example custom_tool --no-default-features`
#![expect(clippy::print_stdout, reason = "this program prints to the terminal")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use deerflow_harness::agents::{AgentBuilder, StaticResolver};
use deerflow_harness::ids::ThreadId;
use deerflow_harness::messages::Message;
use deerflow_harness::models::ScriptedModel;
use deerflow_harness::runtime::in_memory::runtime_in_memory;
use deerflow_harness::runtime::runs::{RunLimits, RunRequest, RunsFacade};
use deerflow_harness::runtime::stream_bridge::StreamItem;
use deerflow_harness::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::Deserialize;

/// A tool is a struct ...
struct WordCount;

/// ... with arguments, whose comments the model reads ...
#[derive(Deserialize, JsonSchema)]
struct WordCountArgs {
    /// The text to count words in.
    text: String,
}

/// ... and a name, a purpose, and something to do.
impl Tool for WordCount {
    type Args = WordCountArgs;

    fn name(&self) -> &str {
        "word_count"
    }

    fn description(&self) -> &str {
        "Count the words of a text."
    }

    // Counting changes nothing, so a call that a crash interrupted may be repeated.
    fn effect(&self, _args: &WordCountArgs) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: WordCountArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(format!("{} words", args.text.split_whitespace().count()).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Any `ChatModel` works here. The scripted one follows the directives of the message.
    let model = Arc::new(ScriptedModel::default());
    let agent = AgentBuilder::new(model)
        .system_prompt("You count words.")
        .tool(WordCount)
        .build();
    let assistants = Arc::new(StaticResolver::new().with_agent("counter", agent));
    let runs = RunsFacade::new(runtime_in_memory(assistants)?, RunLimits::default());

    let question =
        r#"[[tool:word_count {"text":"to be or not to be"}]] then say That is the question."#;
    let spec = RunRequest::ask(
        "counter",
        ThreadId::parse("example")?,
        Message::human(question),
    );
    let (_run, mut stream) = runs
        .create_and_stream(spec, Duration::from_secs(15))
        .await?;

    while let Some(item) = stream.items.next().await {
        match item {
            // Each event is `[message or fragment, metadata]`.
            StreamItem::Event(event) if event.event == "messages" => {
                let (message, _meta): (serde_json::Value, serde_json::Value) =
                    serde_json::from_slice(&event.data.into_bytes())?;
                match (message["type"].as_str(), message["content"].as_str()) {
                    (Some("tool"), Some(result)) => println!(
                        "[{}] {result}",
                        message["name"].as_str().unwrap_or_default()
                    ),
                    (_, Some(text)) => print!("{text}"),
                    _ => {}
                }
            }
            StreamItem::End(how) => println!("\n[{how:?}]"),
            _ => {}
        }
    }
    Ok(())
}
