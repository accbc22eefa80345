//! Tools that ask the user one or two questions.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::fn_tool::FnTool;
use crate::tools::{Tool, ToolControl, ToolOutput};

fn ask(question: &str) -> ToolOutput {
    ToolOutput::only(ToolControl::Ask(json!({ "question": question })))
}

/// Arguments of `ask_clarification`.
#[derive(Debug, Deserialize, JsonSchema)]
struct QuestionArgs {
    /// What the person is asked.
    question: String,
}

/// `ask_clarification`: returns the answer.
pub(super) fn ask_clarification() -> impl Tool {
    FnTool::pure(
        "ask_clarification",
        "Asks a person.",
        |args: QuestionArgs, ctx| {
            Ok(match ctx.answers.first() {
                None => ask(&args.question),
                Some(Value::String(text)) => text.as_str().into(),
                Some(other) => other.to_string().into(),
            })
        },
    )
}

/// Arguments of `ask_twice`.
#[derive(Debug, Deserialize, JsonSchema)]
struct TwoQuestionsArgs {
    /// What is asked first.
    first: String,
    /// What is asked then.
    second: String,
}

/// `ask_twice`: returns a list of both answers.
pub(super) fn ask_twice() -> impl Tool {
    FnTool::pure(
        "ask_twice",
        "Asks a person two questions, one after the other.",
        |args: TwoQuestionsArgs, ctx| {
            Ok(match ctx.answers.as_slice() {
                [] => ask(&args.first),
                [_] => ask(&args.second),
                answers => json!(answers).to_string().into(),
            })
        },
    )
}
