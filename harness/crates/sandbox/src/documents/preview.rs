//! Preview of an attached file, to decide whether to read it.

use std::collections::HashSet;

use super::kind::DocumentKind;
use super::outline::{Heading, outline};
use crate::sandbox::{Root, ThreadFiles, VirtualPath};

/// Maximum size of a previewed text, in bytes.
const MAX_TEXT_BYTES: u64 = 4 << 20;
/// Maximum number of lines in a preview.
const PREVIEW_LINES: usize = 5;
/// Maximum length of a preview line, in characters.
const MAX_LINE_CHARS: usize = 200;

/// Returns the first line of the Markdown file converted from a document. It distinguishes the file
/// from users' files and from conversions of other documents.
pub fn mark_of(document: &str) -> String {
    format!("<!-- converted from {document:?} -->")
}

/// Preview of an uploaded file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UploadPreview {
    /// Virtual path of its Markdown, if it was converted.
    pub markdown: Option<String>,
    /// Headings of the text.
    pub headings: Vec<Heading>,
    /// `true` if there are more headings.
    pub truncated: bool,
    /// First lines of the text, if it has no headings.
    pub preview: Vec<String>,
}

impl UploadPreview {
    /// Formats the preview as lines.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let markdown = self.markdown.iter().map(|path| format!("Markdown: {path}"));
        let headings = self
            .headings
            .iter()
            .map(|Heading { line, title }| format!("L{line}: {title}"));
        let more = self
            .truncated
            .then(|| "... more headings follow".to_owned());
        markdown
            .chain(headings)
            .chain(more)
            .chain(self.preview.iter().map(|line| format!("> {line}")))
    }
}

/// Previews an upload: the Markdown of a document, or the file itself if it is Markdown. Other
/// files have an empty preview.
pub async fn upload_preview(files: &ThreadFiles, name: &str) -> UploadPreview {
    let Some((_, markdown)) = DocumentKind::of_file(name) else {
        let is_text = name.to_ascii_lowercase().ends_with(".md");
        return if is_text {
            preview_of(files, name, "").await.unwrap_or_default()
        } else {
            UploadPreview::default()
        };
    };
    let mark = mark_of(name);
    for candidate in markdown {
        if let Some(found) = preview_of(files, &candidate, &mark).await {
            let markdown = Some(format!(
                "{}/{candidate}",
                VirtualPath::of_root(Root::Uploads)
            ));
            return UploadPreview { markdown, ..found };
        }
    }
    UploadPreview::default()
}

/// Previews a text; `None` if no file exists that begins with `mark`.
async fn preview_of(files: &ThreadFiles, name: &str, mark: &str) -> Option<UploadPreview> {
    let bytes = files
        .read_bytes(&path_in_uploads(name)?, MAX_TEXT_BYTES)
        .await
        .ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let unmarked = text.strip_prefix(mark)?;
    let found = outline(&text);
    let preview = if found.headings.is_empty() {
        preview(unmarked)
    } else {
        Vec::new()
    };
    Some(UploadPreview {
        markdown: None,
        headings: found.headings,
        truncated: found.truncated,
        preview,
    })
}

fn preview(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .take(PREVIEW_LINES)
        .map(|line| line.chars().take(MAX_LINE_CHARS).collect())
        .collect()
}

fn path_in_uploads(name: &str) -> Option<VirtualPath> {
    VirtualPath::parse(&format!("{}/{name}", VirtualPath::of_root(Root::Uploads))).ok()
}

/// Returns the names of the files that were converted from one of these documents.
pub async fn hidden_copies(files: &ThreadFiles, names: &[&str]) -> HashSet<String> {
    let mut copies = HashSet::new();
    for name in names {
        for markdown in DocumentKind::of_file(name)
            .into_iter()
            .flat_map(|(_, markdown)| markdown)
        {
            let Some(path) = path_in_uploads(&markdown) else {
                continue;
            };
            match files.is_marked(&path, mark_of(name)).await {
                Ok(true) => drop(copies.insert(markdown)),
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "cannot read an upload"),
            }
        }
    }
    copies
}
