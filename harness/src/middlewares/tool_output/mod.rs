//! Moves long tool results out of the conversation: the text is stored in a file of the thread, and
//! the model reads a synopsis.

mod clip;
mod synopsis;

use async_trait::async_trait;
use bytes::Bytes;

use self::clip::clipped;
use self::synopsis::synopsis;
use super::hooks::Hooks;
use super::middleware::{Middleware, ModelNext, ToolNext};
use crate::config::ToolOutputConfig;
use crate::messages::{Content, Message, ToolCall};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::sandbox::pending_file::Durability;
use crate::sandbox::{FileHome, VirtualPath};
use crate::tools::{ToolContext, ToolError, ToolOutput};

/// Maximum length of the tool's name in a file name, in characters.
const MAX_NAME_CHARS: usize = 48;
/// Number of characters of a call's key in its file name, to make it unique.
const KEY_CHARS: usize = 12;
/// Tools with results that are stored as `.log` files; all others are stored as `.txt`.
const LOGS: [&str; 2] = ["bash", "web_fetch"];

/// Limits the size of tool results, which every later model call repeats.
#[derive(Debug, Clone, Default)]
pub struct ToolOutputBudgetMiddleware {
    limits: ToolOutputConfig,
    files: Option<FileHome>,
}

impl ToolOutputBudgetMiddleware {
    /// Creates the middleware with these limits. Without file storage, long results are cut.
    pub fn new(limits: ToolOutputConfig, files: Option<FileHome>) -> Self {
        Self { limits, files }
    }

    /// Returns the replacement of a text that is too long; `None` if it may stay.
    async fn bounded(&self, call: &ToolCall, text: &str, ctx: &ToolContext) -> Option<String> {
        let limit = self.limits.limit(&call.name)?;
        if !is_longer(text, limit) {
            return None;
        }
        match self.store(call, text, ctx).await {
            Some(path) => Some(synopsis(
                &call.name,
                text,
                &path,
                (
                    self.limits.preview_head_chars,
                    self.limits.preview_tail_chars,
                ),
            )),
            None => self.cut(text),
        }
    }

    fn cut(&self, text: &str) -> Option<String> {
        let limits = &self.limits;
        let is_long = limits.fallback_max_chars > 0 && is_longer(text, limits.fallback_max_chars);
        is_long.then(|| {
            clipped(
                text,
                limits.fallback_max_chars,
                limits.fallback_head_chars,
                limits.fallback_tail_chars,
            )
        })
    }

    /// Stores the whole text. The file name is derived from the call, so a repeated call writes the
    /// same file.
    async fn store(&self, call: &ToolCall, text: &str, ctx: &ToolContext) -> Option<VirtualPath> {
        let home = self.files.as_ref()?;
        let plain = |letter: char| {
            if letter.is_ascii_alphanumeric() || letter == '_' {
                letter
            } else {
                '-'
            }
        };
        let tool: String = call.name.chars().take(MAX_NAME_CHARS).map(plain).collect();
        let ending = if LOGS.contains(&call.name.as_str()) {
            "log"
        } else {
            "txt"
        };
        let key = ctx.key.get(..KEY_CHARS).unwrap_or(&ctx.key);
        let path = format!(
            "/mnt/user-data/outputs/{}/{tool}-{key}.{ending}",
            self.limits.storage_subdir
        );
        let path = VirtualPath::parse(&path)
            .inspect_err(
                |error| tracing::warn!(%error, "tool_output.storage_subdir is not a valid path"),
            )
            .ok()?;
        let files = home.thread(&ctx.run.actor.user_id, &ctx.run.thread_id);
        match files
            .write_bytes(
                &path,
                Bytes::copy_from_slice(text.as_bytes()),
                Durability::Cached,
            )
            .await
        {
            Ok(()) => Some(path),
            Err(error) => {
                tracing::warn!(%error, tool = %call.name, "cannot store a long tool result, cutting it");
                None
            }
        }
    }
}

#[async_trait]
impl Middleware for ToolOutputBudgetMiddleware {
    fn name(&self) -> &str {
        "ToolOutputBudgetMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_MODEL | Hooks::WRAP_TOOL
    }

    /// Cuts long results of earlier runs or other origin. They are not stored in files, because the
    /// file name depends on a call.
    async fn wrap_model_call(
        &self,
        mut request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        for message in &mut request.messages {
            if !message.is_result() {
                continue;
            }
            let Content::Text(text) = &message.content else {
                continue;
            };
            let may_stay = |tool| {
                self.limits
                    .limit(tool)
                    .is_none_or(|limit| !is_longer(text, limit))
            };
            if message.name.as_deref().is_some_and(may_stay) {
                continue;
            }
            if let Some(short) = self.cut(text) {
                *message = message.with(|body| body.content = short.into());
            }
        }
        next.run(request).await
    }

    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        ctx: &ToolContext,
        next: ToolNext<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let mut output = next.run(call, ctx).await?;
        let short = match &output.content {
            Content::Text(text) => self.bounded(call, text, ctx).await,
            Content::Blocks(_) => self.bounded(call, &output.content.text(), ctx).await,
        };
        if let Some(short) = short {
            output.content = output.content.with_text(short);
        }
        Ok(output)
    }
}

/// Reports whether the text has more than `chars` characters, without counting short texts.
fn is_longer(text: &str, chars: usize) -> bool {
    text.len() > chars && text.chars().nth(chars).is_some()
}

#[cfg(test)]
#[path = "tool_output_tests.rs"]
mod tests;
