//! Tools without questions and without nested agents: echo, failure, custom events, configuration,
//! sleep.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::fn_tool::FnTool;
use crate::runtime::agent::AgentEvent;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Maximum sleep, in seconds.
const MAX_SLEEP_SECONDS: f64 = 600.0;

/// Arguments of `bash`.
#[derive(Debug, Deserialize, JsonSchema)]
struct BashArgs {
    /// `echo` and the words to answer.
    command: String,
}

/// `bash`: implements `echo` only and starts no process.
pub(super) fn bash() -> impl Tool {
    FnTool::pure(
        "bash",
        "Answers the words behind echo.",
        |args: BashArgs, _| {
            let mut words = words(&args.command).into_iter();
            match words.next().as_deref() {
                Some("echo") => Ok(words.collect::<Vec<_>>().join(" ").into()),
                _ => Err(ToolError::for_model("Error: only echo is known here.")),
            }
        },
    )
}

/// Splits a command into words at spaces outside of quotes.
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

/// Arguments of `explode`.
#[derive(Debug, Deserialize, JsonSchema)]
struct ExplodeArgs {
    /// What the run fails with.
    message: String,
}

/// `explode`: fails the run.
pub(super) fn explode() -> impl Tool {
    FnTool::unsafe_to_repeat(
        "explode",
        "Makes the run fail with a message.",
        |args: ExplodeArgs, _| {
            Err(ToolError::EndRun {
                name: "RuntimeError".to_owned(),
                message: args.message,
            })
        },
    )
}

/// Arguments of `emit`.
#[derive(Debug, Deserialize, JsonSchema)]
struct EmitArgs {
    /// Each is sent as it is.
    events: Vec<Value>,
}

/// `emit`: emits custom events.
pub(super) fn emit() -> impl Tool {
    FnTool::unsafe_to_repeat("emit", "Sends custom events.", |args: EmitArgs, ctx| {
        let count = args.events.len();
        for event in args.events {
            ctx.run.sink.emit(AgentEvent::Custom(event));
        }
        Ok(format!("emitted {count}").into())
    })
}

/// Arguments of `show_config`: none.
#[derive(Debug, Deserialize, JsonSchema)]
struct NoArgs {}

/// `show_config`: returns the configuration that the run sees.
pub(super) fn show_config() -> impl Tool {
    FnTool::pure(
        "show_config",
        "Tells the configuration of the run.",
        |_: NoArgs, ctx| {
            let run = &ctx.run;
            // Both names refer to the same options.
            let config = json!({ "configurable": *run.options, "context": *run.options, "tags": run.tags, "recursion_limit": run.recursion_limit });
            Ok(config.to_string().into())
        },
    )
}

/// `sleep`: sleeps.
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

    fn effect(&self, _args: &SleepArgs) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: SleepArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let bounded = args.seconds.clamp(0.0, MAX_SLEEP_SECONDS);
        let wait = Duration::try_from_secs_f64(bounded)
            .map_err(|_| ToolError::for_model("Error: seconds must be a number."))?;
        tokio::time::sleep(wait).await;
        Ok(format!("slept {bounded}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_splits_at_spaces_outside_of_quotes() {
        assert_eq!(words("echo  a 'b  c' \"d\"e"), ["echo", "a", "b  c", "de"]);
        assert_eq!(words("  "), Vec::<String>::new());
        assert_eq!(words("echo ''"), ["echo", ""]);
    }
}
