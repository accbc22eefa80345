//! Converts tool failures to results that the model can act on.

use std::panic::AssertUnwindSafe;

use async_trait::async_trait;
use futures_util::FutureExt;

use super::hooks::Hooks;
use super::middleware::{Middleware, ToolNext};
use crate::messages::ToolCall;
use crate::runtime::tasks::panic_text;
use crate::tools::{ToolContext, ToolError, ToolOutput};

/// Maximum length of an error that a tool did not phrase for the model, in characters.
const MAX_DETAIL_CHARS: usize = 500;
/// Prefix by which readers of transcripts recognize an error.
const PREFIX: &str = "Error:";

/// Converts failures and panics of tools to results. A tool that ends the run on purpose still
/// does.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolErrorMiddleware;

#[async_trait]
impl Middleware for ToolErrorMiddleware {
    fn name(&self) -> &str {
        "ToolErrorMiddleware"
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
        match AssertUnwindSafe(next.run(call, ctx)).catch_unwind().await {
            Ok(Err(ToolError::ForModel(text))) => {
                Ok(ToolOutput::error(worded(&call.name, "ToolError", &text)))
            }
            Ok(outcome) => outcome,
            Err(panic) => {
                let text = panic_text(panic.as_ref());
                tracing::error!(tool = %call.name, call_id = %call.id, panic = %text, "a tool panicked");
                Ok(ToolOutput::error(worded(&call.name, "Panic", &text)))
            }
        }
    }
}

/// Formats the error; a text that already addresses the model is unchanged.
fn worded(tool: &str, class: &str, detail: &str) -> String {
    if detail.starts_with(PREFIX) {
        return detail.to_owned();
    }
    let mut short: String = detail.chars().take(MAX_DETAIL_CHARS).collect();
    if short.len() < detail.len() {
        short.push('…');
    }
    format!(
        "{PREFIX} tool {tool:?} failed with {class}: {short}. Go on with what you have, or try another way."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_names_tool_and_class_and_is_bounded() {
        assert_eq!(
            worded("ls", "ToolError", "Error: no such directory"),
            "Error: no such directory"
        );
        let text = worded("ls", "Panic", &"ü".repeat(2_000));
        assert!(
            text.starts_with("Error: tool \"ls\" failed with Panic: ü")
                && text.chars().count() < 620
        );
    }
}
