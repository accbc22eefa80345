//! Lets an agent change only files whose present content it knows.
//!
//! A read marks its result with the digest of the whole file, a write that went well with that of the new content. A write to a
//! file that is there needs the newest mark to fit; the marks stand in the conversation, so what was summarized away must be
//! read again.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::middleware::{Hooks, Middleware};
use super::next::ToolNext;
use crate::ids::{RunId, ThreadId};
use crate::messages::{Message, ToolCall, ToolStatus, kwargs};
use crate::sandbox::{FileHome, LineRange, TextRead, ThreadFiles, VirtualPath};
use crate::tools::{ToolContext, ToolError, ToolOutput};

/// Files that are known at once, unless more are in use.
const MOST_KNOWN: usize = 1_024;

/// The gate before `write_file` and `str_replace`.
#[derive(Debug, Clone)]
pub struct ReadBeforeWriteMiddleware {
    files: FileHome,
    known: Arc<parking_lot::Mutex<HashMap<FileKey, Turn>>>,
}

/// A user's thread and a path in it.
type FileKey = (String, ThreadId, VirtualPath);

/// Whose turn it is with a file: a look at it and the call that follows are one. And what the last call left: the calls of one answer
/// are made before any of their results is part of the conversation, so a second change of a file finds here what the first one made.
type Turn = Arc<Mutex<Option<Left>>>;

/// What a call of a run left.
#[derive(Debug, PartialEq)]
struct Left {
    run: RunId,
    digest: String,
}

impl ReadBeforeWriteMiddleware {
    /// Looks at the files of this home.
    pub fn new(files: FileHome) -> Self {
        Self {
            files,
            known: Arc::default(),
        }
    }

    fn turn(&self, key: FileKey) -> Turn {
        let mut known = self.known.lock();
        if known.len() >= MOST_KNOWN && !known.contains_key(&key) {
            // Those that nobody holds or waits for.
            known.retain(|_, turn| Arc::strong_count(turn) > 1);
        }
        Arc::clone(known.entry(key).or_default())
    }
}

#[async_trait]
impl Middleware for ReadBeforeWriteMiddleware {
    fn name(&self) -> &str {
        "ReadBeforeWriteMiddleware"
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
        let writes = match call.name.as_str() {
            "read_file" => false,
            "write_file" | "str_replace" => true,
            _ => return next.run(call, ctx).await,
        };
        let Some(path) = call
            .args
            .get("path")
            .and_then(Value::as_str)
            .and_then(|raw| self.files.writable(raw).ok())
        else {
            return next.run(call, ctx).await;
        };
        let files = self
            .files
            .thread(&ctx.run.actor.user_id, &ctx.run.thread_id);
        let turn = self.turn((
            ctx.run.actor.user_id.clone(),
            ctx.run.thread_id.clone(),
            path.clone(),
        ));
        let mut last = turn.lock().await;
        // What a former attempt of the call did is no change by others, and its recorded result is what the model is to read.
        let is_again = !matches!(ctx.run.calls.former(&ctx.key).await, Ok(None));
        let left = |digest: String| {
            Some(Left {
                run: ctx.run.run_id.clone(),
                digest,
            })
        };
        if writes
            && !is_again
            && let Some(present) = digest(&files, &path).await
            && *last != left(present.clone())
        {
            let known = newest_mark(ctx.state.messages(), &path);
            if known != Some(present.as_str()) && result_of(call).as_ref() != Some(&present) {
                let why = if known.is_some() {
                    "has changed since you last read it"
                } else {
                    "is there already, and you have not read it"
                };
                return Ok(ToolOutput::error(format!(
                    "Error: {path} {why}. Read it with read_file, then make the change."
                )));
            }
        }
        let mut output = next.run(call, ctx).await?;
        if output.status == ToolStatus::Success
            && !output.content.text().starts_with("Error:")
            && let Some(present) = digest(&files, &path).await
        {
            if writes {
                *last = left(present.clone());
            }
            let mark = json!({ "path": path.to_string(), "sha256": present });
            output
                .additional_kwargs
                .insert(kwargs::READ_MARK.to_owned(), mark);
        }
        Ok(output)
    }
}

/// The digest of the file's content; `None` where there is none, or it is no text: then nothing is known to protect.
async fn digest(files: &ThreadFiles, path: &VirtualPath) -> Option<String> {
    match files.read_text(path, LineRange::default()).await.ok()? {
        TextRead::Text { text, .. } => Some(hex::encode(Sha256::digest(text.as_bytes()))),
        TextRead::Empty => Some(hex::encode(Sha256::digest(b""))),
        TextRead::StartPastEnd | TextRead::BadRange(_) => None,
    }
}

/// The digest of what a call leaves, where the call alone says it: one that was made before, and is made again after its process
/// died, changes nothing.
fn result_of(call: &ToolCall) -> Option<String> {
    let appends = call
        .args
        .get("append")
        .is_some_and(|append| append != false);
    let content = call
        .args
        .get("content")
        .and_then(Value::as_str)
        .filter(|_| call.name == "write_file" && !appends)?;
    Some(hex::encode(Sha256::digest(content.as_bytes())))
}

/// What the agent knows of the file.
fn newest_mark<'a>(messages: &'a [Message], path: &VirtualPath) -> Option<&'a str> {
    let path = path.to_string();
    let mut marks = messages
        .iter()
        .rev()
        .filter_map(|message| message.additional_kwargs.get(kwargs::READ_MARK));
    marks
        .find(|mark| mark.get("path").and_then(Value::as_str) == Some(&path))?
        .get("sha256")?
        .as_str()
}

#[cfg(test)]
#[path = "read_before_write_tests.rs"]
mod tests;
