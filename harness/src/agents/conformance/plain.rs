//! Tools without a person and without another agent: echo, failure, custom events, configuration, waiting.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::runtime::agent::AgentEvent;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// The longest sleep, in seconds.
const LONGEST_SLEEP: f64 = 600.0;

/// `bash`: understands `echo` and nothing else, and starts no process.
pub(super) struct Bash;

/// Arguments of `bash`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct BashArgs {
    /// `echo` and the words to answer.
    command: String,
}

impl Tool for Bash {
    type Args = BashArgs;

    fn name(&self) -> &str {
        "bash"
    }

    fn description(&self) -> &str {
        "Answers the words behind echo."
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: BashArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mut words = words(&args.command).into_iter();
        match words.next().as_deref() {
            Some("echo") => Ok(words.collect::<Vec<_>>().join(" ").into()),
            _ => Err(ToolError::for_model("Error: only echo is known here.")),
        }
    }
}

/// The words of a command: parted by spaces, quotes hold a word together.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in command.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// `explode`: ends the run.
pub(super) struct Explode;

/// Arguments of `explode`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ExplodeArgs {
    /// What the run fails with.
    message: String,
}

impl Tool for Explode {
    type Args = ExplodeArgs;

    fn name(&self) -> &str {
        "explode"
    }

    fn description(&self) -> &str {
        "Makes the run fail with a message."
    }

    async fn call(&self, args: ExplodeArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Err(ToolError::EndRun { name: "RuntimeError".to_owned(), message: args.message })
    }
}

/// `emit`: custom events.
pub(super) struct Emit;

/// Arguments of `emit`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct EmitArgs {
    /// Each is sent as it is.
    events: Vec<Value>,
}

impl Tool for Emit {
    type Args = EmitArgs;

    fn name(&self) -> &str {
        "emit"
    }

    fn description(&self) -> &str {
        "Sends custom events."
    }

    async fn call(&self, args: EmitArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let count = args.events.len();
        for event in args.events {
            ctx.run.sink.emit(AgentEvent::Custom(event));
        }
        Ok(format!("emitted {count}").into())
    }
}

/// `show_config`: what the run knows of its configuration.
pub(super) struct ShowConfig;

/// Arguments of `show_config`: none.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct NoArgs {}

impl Tool for ShowConfig {
    type Args = NoArgs;

    fn name(&self) -> &str {
        "show_config"
    }

    fn description(&self) -> &str {
        "Tells the configuration of the run."
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    async fn call(&self, _args: NoArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let run = &ctx.run;
        // The two names of the same options mirror each other.
        let seen =
            json!({ "configurable": *run.options, "context": *run.options, "tags": run.tags, "recursion_limit": run.recursion_limit });
        Ok(seen.to_string().into())
    }
}

/// `sleep`: waits.
pub(super) struct Sleep;

/// Arguments of `sleep`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SleepArgs {
    /// How long.
    seconds: f64,
}

impl Tool for Sleep {
    type Args = SleepArgs;

    fn name(&self) -> &str {
        "sleep"
    }

    fn description(&self) -> &str {
        "Waits some seconds."
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: SleepArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let bounded = args.seconds.clamp(0.0, LONGEST_SLEEP);
        let wait = Duration::try_from_secs_f64(bounded).map_err(|_| ToolError::for_model("Error: seconds must be a number."))?;
        tokio::time::sleep(wait).await;
        Ok(format!("slept {bounded}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_parted_into_words_and_quotes_hold_them_together() {
        assert_eq!(words("echo  a 'b  c' \"d\"e"), ["echo", "a", "b  c", "de"]);
        assert_eq!(words("  "), Vec::<String>::new());
        assert_eq!(words("echo ''"), ["echo", ""]);
    }
}
