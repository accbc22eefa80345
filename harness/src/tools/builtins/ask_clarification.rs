//! `ask_clarification`: asks the user a question and ends the turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tools::{Effect, Tool, ToolContext, ToolControl, ToolError, ToolOutput};

/// Name of the tool, by which `ClarificationMiddleware` recognizes it.
pub const ASK_CLARIFICATION: &str = "ask_clarification";

/// Asks the user. `ClarificationMiddleware` renders the question for the interface; without it the
/// question itself is the result.
#[derive(Debug, Clone, Copy, Default)]
pub struct AskClarification;

/// Why the agent asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClarificationType {
    /// Something needed was not said.
    MissingInfo,
    /// What was said can mean several things.
    AmbiguousRequirement,
    /// There are several good ways.
    ApproachChoice,
    /// What comes next cannot be undone or costs much.
    RiskConfirmation,
    /// The agent has a proposal.
    Suggestion,
}

/// Arguments of `ask_clarification`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AskClarificationArgs {
    /// One clear question in the user's language.
    pub question: String,
    /// Why you ask.
    pub clarification_type: ClarificationType,
    /// What the user must know to answer, if anything.
    #[serde(default)]
    pub context: Option<String>,
    /// Answers to choose from, if there are natural ones.
    #[serde(default)]
    #[schemars(with = "Option<Vec<String>>")]
    pub options: Option<Value>,
    /// A form for several values in one question, instead of options: at most 16 fields.
    #[serde(default)]
    #[schemars(with = "Option<Vec<ClarificationField>>")]
    pub fields: Option<Value>,
}

/// Field of a form. The middleware reads fields leniently; this is their shape for the model.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ClarificationField {
    /// Unique name.
    pub name: String,
    /// Label of the field, the name by default.
    #[serde(default)]
    pub label: Option<String>,
    /// Kind, text by default.
    #[serde(default, rename = "type")]
    pub kind: ClarificationFieldType,
    /// Requires a value; for a checkbox, requires that it is ticked.
    #[serde(default)]
    pub required: bool,
    /// Choices of select and multi_select, at most 24.
    #[serde(default)]
    pub options: Option<Vec<String>>,
    /// Hint in the empty field.
    #[serde(default)]
    pub placeholder: Option<String>,
}

/// Kind of a field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClarificationFieldType {
    /// One line.
    #[default]
    Text,
    /// Several lines.
    Textarea,
    /// A number.
    Number,
    /// One of the options.
    Select,
    /// Any of the options.
    MultiSelect,
    /// Yes or no.
    Checkbox,
    /// A date.
    Date,
}

impl Tool for AskClarification {
    type Args = AskClarificationArgs;

    fn name(&self) -> &str {
        ASK_CLARIFICATION
    }

    fn description(&self) -> &str {
        "Ask the user a question and wait for the answer. Use it before you begin when something needed is missing, when the \
         request can be read in several ways, when there are several good approaches, or before anything risky or irreversible. \
         Do not use it for what you can find out yourself, and ask one question at a time: several \
         values for one decision are one question with `fields`. Your turn ends with the call."
    }

    fn effect(&self, _args: &AskClarificationArgs) -> Effect {
        Effect::Pure
    }

    async fn call(
        &self,
        args: AskClarificationArgs,
        _ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput {
            control: ToolControl::End,
            ..ToolOutput::text(args.question)
        })
    }
}
