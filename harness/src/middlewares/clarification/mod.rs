//! Shows the agent's question to the user as a card and ends the run. The user's answer starts a
//! new run.

mod form;
mod options;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use self::form::{FormField, fields_of};
use self::options::options_of;
use super::hooks::Hooks;
use super::middleware::{Middleware, ToolNext};
use crate::messages::{Message, ToolCall};
use crate::tools::builtins::ASK_CLARIFICATION;
use crate::tools::{ToolContext, ToolControl, ToolError, ToolOutput};

/// Run option that states that no user is available to answer.
const DISABLED: &str = "disable_clarification";
/// Result of `ask_clarification` if no user is available.
const DECIDE_YOURSELF: &str = "Nobody can answer questions in this run. Decide by your best judgement, say which assumption you made, and go on.";

/// Handles `ask_clarification` instead of the tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClarificationMiddleware;

#[async_trait]
impl Middleware for ClarificationMiddleware {
    fn name(&self) -> &str {
        "ClarificationMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_TOOL
    }

    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        ctx: &ToolContext,
        next: ToolNext<'_>,
    ) -> Result<ToolOutput, ToolError> {
        if call.name != ASK_CLARIFICATION {
            return next.run(call, ctx).await;
        }
        if ctx.run.option_bool(DISABLED) == Some(true) {
            return Ok(ToolOutput::text(DECIDE_YOURSELF));
        }
        Ok(card(call, ctx.state.messages()))
    }
}

/// Builds the card of a question. Repeated calls return the same ids, so a repeated card replaces
/// the first.
fn card(call: &ToolCall, messages: &[Message]) -> ToolOutput {
    let text = |key: &str| {
        call.args
            .get(key)
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    let kind = text("clarification_type").unwrap_or("missing_info");
    let question = text("question").unwrap_or("Could you tell me more?");
    let context = text("context");
    let form = fields_of(call.args.get("fields"));
    let options = if form.is_some() {
        Vec::new()
    } else {
        options_of(call.args.get("options"))
    };
    let content = rendered(kind, question, context, &options, form.as_deref());
    let request_id = unique_id(
        format!(
            "clarification:{}",
            if call.id.is_empty() {
                digest(&content)
            } else {
                call.id.clone()
            }
        ),
        messages,
    );
    // Version 2 is the one that has forms: an interface of version 1 shows the text instead.
    let (version, input_mode) = match (&form, options.is_empty()) {
        (Some(_), _) => (2, "form"),
        (None, true) => (1, "free_text"),
        (None, false) => (1, "choice_with_other"),
    };
    let mut request = Map::from_iter([
        ("version".to_owned(), json!(version)),
        ("kind".to_owned(), json!("human_input_request")),
        ("source".to_owned(), json!(ASK_CLARIFICATION)),
        ("request_id".to_owned(), json!(request_id)),
        ("clarification_type".to_owned(), json!(kind)),
        ("question".to_owned(), json!(question)),
        ("input_mode".to_owned(), json!(input_mode)),
    ]);
    if !call.id.is_empty() {
        request.insert("tool_call_id".to_owned(), json!(call.id));
    }
    if let Some(context) = context {
        request.insert("context".to_owned(), json!(context));
    }
    if !options.is_empty() {
        let option = |(at, label): (usize, &String)| json!({ "id": format!("option-{}", at + 1), "label": label, "value": label });
        request.insert(
            "options".to_owned(),
            options.iter().enumerate().map(option).collect(),
        );
    }
    if let Some(form) = form {
        request.insert("fields".to_owned(), json!(form));
    }
    ToolOutput {
        artifact: json!({ "human_input": request }),
        message_id: Some(request_id),
        control: ToolControl::End,
        ..ToolOutput::text(content)
    }
}

/// Returns `id`, extended if an earlier message of the thread already has it: some providers
/// restart their call ids with every answer.
fn unique_id(id: String, messages: &[Message]) -> String {
    let Some(at) = messages.iter().rposition(Message::is_ai) else {
        return id;
    };
    let used_ids = messages[..at]
        .iter()
        .any(|message| message.id.as_ref() == Some(&id));
    match &messages[at].id {
        Some(answer) if used_ids => format!("{id}:{answer}"),
        _ => id,
    }
}

/// Returns the text of a card, for interfaces without cards.
fn rendered(
    kind: &str,
    question: &str,
    context: Option<&str>,
    options: &[String],
    form: Option<&[FormField]>,
) -> String {
    let icon = match kind {
        "ambiguous_requirement" => "🤔",
        "approach_choice" => "🔀",
        "risk_confirmation" => "⚠️",
        "suggestion" => "💡",
        _ => "❓",
    };
    let mut text = match context {
        Some(context) => format!("{icon} {context}\n\n{question}"),
        None => format!("{icon} {question}"),
    };
    if !options.is_empty() {
        text.push('\n');
        for (at, option) in options.iter().enumerate() {
            text.push_str(&format!("\n  {}. {option}", at + 1));
        }
    }
    if let Some(form) = form {
        text.push('\n');
        for field in form {
            text.push_str(&format!("\n  - {}", field.line()));
        }
    }
    text
}

fn digest(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes())[..8])
}

#[cfg(test)]
mod clarification_tests;
#[cfg(test)]
mod form_tests;
