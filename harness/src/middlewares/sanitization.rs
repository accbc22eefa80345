//! Sanitizes user text and untrusted tool results, so that they cannot imitate text of the
//! framework.

use std::borrow::Cow;
use std::collections::HashSet;

use async_trait::async_trait;
use serde_json::Value;

use super::delegation::TASK;
use super::framework_tags::neutralised;
use super::hooks::Hooks;
use super::middleware::{Middleware, ModelNext, ToolNext};
use super::real_user::is_of_a_user;
use crate::messages::marks::{BEGIN_USER_INPUT, END_USER_INPUT};
use crate::messages::{Content, Message, MessageBody, TextPieces, ToolCall, kwargs};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::tools::builtins::TOOL_SEARCH;
use crate::tools::{ToolContext, ToolError, ToolOutput, ToolRegistry};

/// Tools that return untrusted text: a subagent repeats text that it has read, a tool search
/// returns descriptions from servers.
const FOREIGN: [&str; 6] = [
    "web_fetch",
    "web_search",
    "image_search",
    "web_capture",
    TASK,
    TOOL_SEARCH,
];
/// Tags of the block that the framework adds before a user's text.
const UPLOADS: (&str, &str) = ("<current_uploads>", "</current_uploads>");

/// Encloses user text in two marks and neutralises tags of the framework in it.
///
/// This applies to every user message, not only the newest: otherwise each new message would change
/// the previous one in the request, and the provider's prompt cache would not match.
#[derive(Debug, Clone, Copy, Default)]
pub struct InputSanitizationMiddleware;

#[async_trait]
impl Middleware for InputSanitizationMiddleware {
    fn name(&self) -> &str {
        "InputSanitizationMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_MODEL
    }

    async fn wrap_model_call(
        &self,
        mut request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        for message in request
            .messages
            .iter_mut()
            .filter(|message| message.is_human())
        {
            *message = message.framed(framed);
        }
        next.run(request).await
    }
}

/// Neutralises tags in untrusted tool results: web pages, subagents, MCP servers.
#[derive(Debug, Clone, Default)]
pub struct ToolResultSanitizationMiddleware {
    foreign: HashSet<String>,
}

impl ToolResultSanitizationMiddleware {
    /// Creates the middleware for an agent with these tools.
    pub fn new(tools: &ToolRegistry) -> Self {
        Self {
            foreign: tools.foreign().map(str::to_owned).collect(),
        }
    }
}

#[async_trait]
impl Middleware for ToolResultSanitizationMiddleware {
    fn name(&self) -> &str {
        "ToolResultSanitizationMiddleware"
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
        let mut output = next.run(call, ctx).await?;
        if FOREIGN.contains(&call.name.as_str()) || self.foreign.contains(&call.name) {
            output.content = harmless(output.content);
        }
        Ok(output)
    }
}

/// Returns the text of a human message in its frame; `None` for those that no user wrote and without
/// text.
fn framed(message: &MessageBody) -> Option<TextPieces<'_>> {
    if message.content.is_blank() || !is_of_a_user(message) {
        return None;
    }
    let original = message
        .additional_kwargs
        .get(kwargs::ORIGINAL_USER_CONTENT)
        .and_then(Value::as_str);
    Some(match message.content.text_cow() {
        Cow::Borrowed(text) => in_frame(text, original),
        Cow::Owned(text) => TextPieces::new([in_frame(&text, original).joined().into()]),
    })
}

fn in_frame<'a>(text: &'a str, original: Option<&str>) -> TextPieces<'a> {
    let block = original.and_then(|original| text.strip_suffix(original));
    let (block, own) = match block {
        Some(block) if is_uploads(block) => (block.trim_end(), &text[block.len()..]),
        _ => ("", text),
    };
    let uploads = uploads(block).map_or_else(String::new, |uploads| format!("{uploads}\n\n"));
    let begin = format!("{uploads}{BEGIN_USER_INPUT}\n");
    let end = format!("\n{END_USER_INPUT}");
    TextPieces::new([begin.into(), neutralised(own), end.into()])
}

fn is_uploads(block: &str) -> bool {
    let block = block.trim_end();
    block.starts_with(UPLOADS.0) && block.ends_with(UPLOADS.1)
}

/// Sanitizes the framework's block. A client can set the field that separates the block from the
/// user's text, so the block is not trusted either.
fn uploads(block: &str) -> Option<String> {
    let inside = block.strip_prefix(UPLOADS.0)?.strip_suffix(UPLOADS.1)?;
    Some(format!("{}{}{}", UPLOADS.0, neutralised(inside), UPLOADS.1))
}

fn harmless(content: Content) -> Content {
    let safe = |text: String| match neutralised(&text) {
        Cow::Owned(safe) => safe,
        Cow::Borrowed(_) => text,
    };
    match content {
        Content::Text(text) => Content::Text(safe(text)),
        Content::Blocks(mut blocks) => {
            for block in &mut blocks {
                let text = if block.is_string() {
                    Some(block)
                } else {
                    block.get_mut("text")
                };
                if let Some(Value::String(text)) = text {
                    *text = safe(std::mem::take(text));
                }
            }
            Content::Blocks(blocks)
        }
    }
}

#[cfg(test)]
#[path = "sanitization_tests.rs"]
mod tests;
