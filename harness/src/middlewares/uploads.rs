//! Describes the files of the user's message to the model.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::hooks::{HookResult, Hooks};
use super::middleware::Middleware;
use crate::documents::{UploadPreview, size_text, upload_preview};
use crate::messages::marks::escaped;
use crate::messages::{Content, Message, kwargs};
use crate::runtime::agent::RunContext;
use crate::sandbox::safe_fs::NodeKind;
use crate::sandbox::{FileHome, ThreadFiles, VirtualPath};
use crate::state::{StateUpdate, ThreadState};

/// Folder of uploads, as tools see it.
const UPLOADS: &str = "/mnt/user-data/uploads";
/// Maximum number of files that are described individually; further files are only counted.
const MAX_DETAILED: usize = 10;

/// Adds a `<current_uploads>` block before the user's text, and the list to `uploaded_files`.
#[derive(Debug, Clone)]
pub struct UploadsMiddleware {
    files: FileHome,
}

/// Upload that exists on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Upload {
    name: String,
    bytes: u64,
    preview: UploadPreview,
}

impl UploadsMiddleware {
    /// Creates the middleware for the files in this storage.
    pub fn new(files: FileHome) -> Self {
        Self { files }
    }
}

#[async_trait]
impl Middleware for UploadsMiddleware {
    fn name(&self) -> &str {
        "UploadsMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::BEFORE_AGENT
    }

    async fn before_agent(&self, state: &ThreadState, ctx: &RunContext) -> HookResult {
        let Some(last) = state.messages().last().filter(|message| message.is_human()) else {
            return Ok(clear_uploads(state));
        };
        let files = self.files.thread(&ctx.actor.user_id, &ctx.thread_id);
        let uploads = present(&named_files(last), &files).await;
        if uploads.is_empty() {
            return Ok(clear_uploads(state));
        }
        let list: Vec<Value> = uploads.iter().map(Upload::entry).collect();
        let message = with_block(last, &block(&uploads));
        Ok(StateUpdate::messages([message])
            .and("uploaded_files", Value::Array(list))
            .into())
    }
}

/// Returns an update that empties the list of an earlier message.
fn clear_uploads(state: &ThreadState) -> super::hooks::HookOutcome {
    let empty = state
        .channel("uploaded_files")
        .is_none_or(|list| list.as_array().is_some_and(Vec::is_empty));
    if empty {
        StateUpdate::default().into()
    } else {
        StateUpdate::channel("uploaded_files", json!([])).into()
    }
}

/// Returns the plain file names among the message's `files`, without duplicates.
fn named_files(message: &Message) -> Vec<String> {
    let entries = message
        .additional_kwargs
        .get(kwargs::FILES)
        .and_then(Value::as_array);
    let mut names: Vec<String> = Vec::new();
    for name in entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.get("filename").and_then(Value::as_str))
    {
        if is_plain(name) && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Reports whether a name contains no path and does not belong to an upload in progress.
fn is_plain(name: &str) -> bool {
    let staging = name.starts_with(".upload-") && name.ends_with(".part");
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0']) && !staging
}

async fn present(names: &[String], files: &ThreadFiles) -> Vec<Upload> {
    let mut uploads = Vec::new();
    for name in names {
        let Ok(path) = VirtualPath::parse(&format!("{UPLOADS}/{name}")) else {
            continue;
        };
        match files.stat(&path).await {
            Ok(Some(stat)) if stat.kind == NodeKind::File => {
                let detailed = uploads.len() < MAX_DETAILED;
                let preview = if detailed {
                    upload_preview(files, name).await
                } else {
                    UploadPreview::default()
                };
                uploads.push(Upload {
                    name: name.clone(),
                    bytes: stat.bytes,
                    preview,
                });
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, file = %name, "cannot inspect an upload"),
        }
    }
    uploads
}

impl Upload {
    fn extension(&self) -> String {
        self.name
            .rsplit_once('.')
            .map(|(_, extension)| format!(".{}", extension.to_lowercase()))
            .unwrap_or_default()
    }

    fn path(&self) -> String {
        format!("{UPLOADS}/{}", self.name)
    }

    fn entry(&self) -> Value {
        json!({ "filename": self.name, "size": self.bytes, "path": self.path(), "extension": self.extension() })
    }
}

fn block(uploads: &[Upload]) -> String {
    let mut lines = vec![
        "<current_uploads>".to_owned(),
        "The user attached these files to this message:".to_owned(),
    ];
    for upload in uploads.iter().take(MAX_DETAILED) {
        lines.push(format!(
            "- {} ({})",
            escaped(&upload.name),
            size_text(upload.bytes)
        ));
        lines.push(format!("  Path: {}", escaped(&upload.path())));
        lines.extend(
            upload
                .preview
                .lines()
                .map(|line| format!("  {}", escaped(&line))),
        );
    }
    let rest = &uploads[uploads.len().min(MAX_DETAILED)..];
    if !rest.is_empty() {
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for upload in rest {
            *kinds.entry(upload.extension()).or_default() += 1;
        }
        let kinds: Vec<String> = kinds
            .into_iter()
            .map(|(kind, count)| {
                format!(
                    "{count} {}",
                    if kind.is_empty() {
                        "without extension".to_owned()
                    } else {
                        escaped(&kind)
                    }
                )
            })
            .collect();
        lines.push(format!(
            "- and {} more: {}. List {UPLOADS} to see them.",
            rest.len(),
            kinds.join(", ")
        ));
    }
    lines.push("Read text files with read_file, long ones by line range.".to_owned());
    lines.push("</current_uploads>".to_owned());
    lines.join("\n")
}

/// Returns the message with the block before its text; the original text is stored with it.
fn with_block(message: &Message, block: &str) -> Message {
    message.with(|body| {
        let text = body.content.text();
        body.content = match std::mem::take(&mut body.content) {
            Content::Text(text) => format!("{block}\n\n{text}").into(),
            Content::Blocks(mut blocks) => {
                blocks.insert(
                    0,
                    Value::Object(Map::from_iter([
                        ("type".to_owned(), json!("text")),
                        ("text".to_owned(), json!(block)),
                    ])),
                );
                Content::Blocks(blocks)
            }
        };
        let original = body
            .additional_kwargs
            .entry(kwargs::ORIGINAL_USER_CONTENT)
            .or_insert(Value::Null);
        if !original.is_string() {
            *original = Value::String(text);
        }
    })
}

#[cfg(test)]
#[path = "uploads_tests.rs"]
mod tests;
