//! Tools that ask a person and wait, once and twice.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tools::{Effect, Tool, ToolContext, ToolControl, ToolError, ToolOutput};

fn ask(question: &str) -> ToolOutput {
    ToolOutput::only(ToolControl::Ask(json!({ "question": question })))
}

/// `ask_clarification`: its result is the answer.
pub(super) struct AskClarification;

/// Arguments of `ask_clarification`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct QuestionArgs {
    /// What the person is asked.
    question: String,
}

impl Tool for AskClarification {
    type Args = QuestionArgs;

    fn name(&self) -> &str {
        "ask_clarification"
    }

    fn description(&self) -> &str {
        "Asks a person."
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: QuestionArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(match ctx.answers.first() {
            None => ask(&args.question),
            Some(Value::String(text)) => text.as_str().into(),
            Some(other) => other.to_string().into(),
        })
    }
}

/// `ask_twice`: its result is a list of both answers.
pub(super) struct AskTwice;

/// Arguments of `ask_twice`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TwoQuestionsArgs {
    /// What is asked first.
    first: String,
    /// What is asked then.
    second: String,
}

impl Tool for AskTwice {
    type Args = TwoQuestionsArgs;

    fn name(&self) -> &str {
        "ask_twice"
    }

    fn description(&self) -> &str {
        "Asks a person two questions, one after the other."
    }

    fn effect(&self) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: TwoQuestionsArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(match ctx.answers.as_slice() {
            [] => ask(&args.first),
            [_] => ask(&args.second),
            answers => json!(answers).to_string().into(),
        })
    }
}
