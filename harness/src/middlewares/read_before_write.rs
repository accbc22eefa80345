//! Lets an agent change a file only if it has read the file's current content.
//!
//! A read marks its result with the digest of the whole file, a successful write with that of the
//! new content. A write to an existing file requires that the newest mark matches the current
//! content. The marks are in the conversation, so a file whose mark was summarized away must be
//! read again.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;

use super::hooks::Hooks;
use super::middleware::{Middleware, ToolNext};
use crate::ids::{RunId, ThreadId};
use crate::messages::{Message, ToolCall, ToolStatus, kwargs};
use crate::sandbox::{FileHome, LineRange, TextRead, ThreadFiles, VirtualPath};
use crate::tools::{ToolContext, ToolError, ToolOutput};

/// Maximum number of tracked files, unless more are in use.
const MAX_TRACKED_FILES: usize = 1_024;

/// Checks calls of `write_file` and `str_replace`.
#[derive(Debug, Clone)]
pub struct ReadBeforeWriteMiddleware {
    files: FileHome,
    known: Arc<parking_lot::Mutex<HashMap<FileKey, FileLock>>>,
}

/// User, thread, and path in the thread.
type FileKey = (String, ThreadId, VirtualPath);

/// Lock of a file for a check and the call that follows it, with the last change of the file.
///
/// The calls of one answer run before any of their results is in the conversation, so a second
/// change of the same file compares with the change that is stored here.
type FileLock = Arc<Mutex<Option<LastChange>>>;

/// File content after a call of a run.
#[derive(Debug, PartialEq)]
struct LastChange {
    run: RunId,
    digest: String,
}

impl ReadBeforeWriteMiddleware {
    /// Creates the middleware for the files in this storage.
    pub fn new(files: FileHome) -> Self {
        Self {
            files,
            known: Arc::default(),
        }
    }

    fn file_lock(&self, key: FileKey) -> FileLock {
        let mut known = self.known.lock();
        if known.len() >= MAX_TRACKED_FILES && !known.contains_key(&key) {
            // Locks that a call holds or waits for must stay.
            known.retain(|_, file_lock| Arc::strong_count(file_lock) > 1);
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
        let file_lock = self.file_lock((
            ctx.run.actor.user_id.clone(),
            ctx.run.thread_id.clone(),
            path.clone(),
        ));
        let mut last = file_lock.lock().await;
        // A change by an earlier attempt of the same call is not a conflict, and the model reads
        // that attempt's recorded result.
        let is_repeat = !matches!(ctx.run.calls.former(&ctx.key).await, Ok(None));
        let change_to = |digest: String| {
            Some(LastChange {
                run: ctx.run.run_id.clone(),
                digest,
            })
        };
        if writes
            && !is_repeat
            && let Some(present) = digest(&files, &path).await
            && *last != change_to(present.clone())
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
                *last = change_to(present.clone());
            }
            let mark = json!({ "path": path.to_string(), "sha256": present });
            output
                .additional_kwargs
                .insert(kwargs::READ_MARK.to_owned(), mark);
        }
        Ok(output)
    }
}

/// Returns the digest of the file's content; `None` if there is no file or it is not text. Such a
/// path is not protected.
async fn digest(files: &ThreadFiles, path: &VirtualPath) -> Option<String> {
    match files.read_text(path, LineRange::default()).await.ok()? {
        TextRead::Text { text, .. } => Some(hex::encode(Sha256::digest(text.as_bytes()))),
        TextRead::Empty => Some(hex::encode(Sha256::digest(b""))),
        TextRead::StartPastEnd | TextRead::BadRange(_) => None,
    }
}

/// Returns the digest that the file has after the call, if the arguments determine it. A file that
/// already has this digest may be written without a read: the call repeats one of a process that
/// died.
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

/// Returns the digest of the file in its newest mark.
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
