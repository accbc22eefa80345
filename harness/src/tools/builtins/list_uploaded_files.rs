//! `list_uploaded_files`: lists the files that the user attached in earlier turns.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{failed, files_of};
use crate::documents::{hidden_copies, size_text, upload_preview};
use crate::sandbox::ignore::is_unfinished;
use crate::sandbox::safe_fs::NodeKind;
use crate::sandbox::{FileHome, Root, VirtualPath};
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Maximum number of results that a call can request.
const MAX_RESULTS: usize = 100;
/// State channel with the uploads of this turn.
const CURRENT: &str = "uploaded_files";

/// Lists the uploads of earlier turns.
#[derive(Debug, Clone)]
pub struct ListUploadedFiles {
    /// File storage of all threads.
    pub home: FileHome,
}

/// Arguments of `list_uploaded_files`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ListUploadedFilesArgs {
    /// Whether to show the headings of documents: true for all, or the names of some.
    #[serde(default)]
    pub include_outline: Outlines,
    /// How many files to show, 100 at most.
    #[serde(default = "default_results")]
    pub max_results: usize,
}

/// Of which files the headings are shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected true, false or a list of file names")]
pub enum Outlines {
    /// Of all, or of none.
    All(bool),
    /// Of those with these names.
    Of(Vec<String>),
}

impl Default for Outlines {
    fn default() -> Self {
        Self::All(false)
    }
}

impl Outlines {
    fn include(&self, name: &str) -> bool {
        match self {
            Self::All(all) => *all,
            Self::Of(names) => names.iter().any(|wanted| wanted == name),
        }
    }
}

fn default_results() -> usize {
    20
}

impl Tool for ListUploadedFiles {
    type Args = ListUploadedFilesArgs;

    fn name(&self) -> &str {
        "list_uploaded_files"
    }

    fn description(&self) -> &str {
        "List the files that the user attached to earlier messages, newest first, with sizes and paths. Those of the newest message \
         are named there already. Use it when the user speaks of a file that you do not see; read a file with read_file."
    }

    fn effect(&self, _args: &ListUploadedFilesArgs) -> Effect {
        Effect::Pure
    }

    async fn call(
        &self,
        args: ListUploadedFilesArgs,
        ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let files = files_of(&self.home, ctx);
        let root = VirtualPath::of_root(Root::Uploads);
        let items = files.read_dir(&root).await.map_err(failed)?;
        let names: Vec<&str> = items.iter().map(|item| item.path.file_name()).collect();
        let copies = hidden_copies(&files, &names).await;
        let current = ctx
            .state
            .channel(CURRENT)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let is_current = |name: &str| current.iter().any(|file| file["filename"] == name);
        let mut found: Vec<_> = items
            .iter()
            .filter(|item| item.stat.kind == NodeKind::File)
            .filter(|item| {
                let name = item.path.file_name();
                !copies.contains(name) && !is_current(name) && !is_unfinished(name)
            })
            .collect();
        if found.is_empty() {
            return Ok(ToolOutput::text(
                "No files were attached to earlier messages.",
            ));
        }
        found.sort_by_key(|item| (Reverse(item.stat.modified), item.path.file_name()));
        let shown = args.max_results.clamp(1, MAX_RESULTS).min(found.len());
        let cut = if shown < found.len() {
            format!(" (showing the newest {shown})")
        } else {
            String::new()
        };
        let mut lines = vec![format!("Found {} files{cut}", found.len())];
        for item in &found[..shown] {
            let name = item.path.file_name();
            lines.push(format!("- {name} ({})", size_text(item.stat.bytes)));
            lines.push(format!("  Path: {}", item.path));
            if args.include_outline.include(name) {
                lines.extend(
                    upload_preview(&files, name)
                        .await
                        .lines()
                        .map(|line| format!("  {line}")),
                );
            }
        }
        Ok(ToolOutput::text(lines.join("\n")))
    }
}
