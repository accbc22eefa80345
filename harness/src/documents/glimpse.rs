//! What an attached file is about, for who decides whether to read it.

use std::collections::HashSet;

use super::kind::DocumentKind;
use super::outline::{Heading, outline};
use crate::sandbox::{Root, ThreadFiles, VirtualPath};

/// The largest text that is looked at, in bytes.
const LARGEST: u64 = 4 << 20;
/// How many lines a preview has.
const PREVIEW: usize = 5;
/// The longest line of a preview, in characters.
const LONGEST_LINE: usize = 200;

/// The first line of the Markdown that was made of a document, by which it is told from a file of the user's own and from what was
/// made of another document.
pub fn mark_of(document: &str) -> String {
    format!("<!-- converted from {document:?} -->")
}

/// A file at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Glimpse {
    /// Where its Markdown is, if it was converted.
    pub markdown: Option<String>,
    /// Its headings.
    pub headings: Vec<Heading>,
    /// Whether it has more headings.
    pub truncated: bool,
    /// Its first lines, if it has no headings.
    pub preview: Vec<String>,
}

impl Glimpse {
    /// The glimpse in lines.
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

/// Looks at an upload: at its Markdown if it is a document, at itself if it is Markdown. Of other files nothing is known.
pub async fn glimpse(files: &ThreadFiles, name: &str) -> Glimpse {
    let Some((_, markdown)) = DocumentKind::of_file(name) else {
        let is_text = name.to_ascii_lowercase().ends_with(".md");
        return if is_text {
            glimpse_of(files, name, "").await.unwrap_or_default()
        } else {
            Glimpse::default()
        };
    };
    let mark = mark_of(name);
    for place in markdown {
        if let Some(found) = glimpse_of(files, &place, &mark).await {
            let markdown = Some(format!("{}/{place}", VirtualPath::of_root(Root::Uploads)));
            return Glimpse { markdown, ..found };
        }
    }
    Glimpse::default()
}

/// Looks at a text; nothing where there is none that begins with `mark`.
async fn glimpse_of(files: &ThreadFiles, name: &str, mark: &str) -> Option<Glimpse> {
    let bytes = files.read_bytes(&place(name)?, LARGEST).await.ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let unmarked = text.strip_prefix(mark)?;
    let found = outline(&text);
    let preview = if found.headings.is_empty() {
        preview(unmarked)
    } else {
        Vec::new()
    };
    Some(Glimpse {
        markdown: None,
        headings: found.headings,
        truncated: found.truncated,
        preview,
    })
}

fn preview(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .take(PREVIEW)
        .map(|line| line.chars().take(LONGEST_LINE).collect())
        .collect()
}

fn place(name: &str) -> Option<VirtualPath> {
    VirtualPath::parse(&format!("{}/{name}", VirtualPath::of_root(Root::Uploads))).ok()
}

/// Which files were made of one of these.
pub async fn hidden_copies(files: &ThreadFiles, names: &[&str]) -> HashSet<String> {
    let mut copies = HashSet::new();
    for name in names {
        for markdown in DocumentKind::of_file(name)
            .into_iter()
            .flat_map(|(_, markdown)| markdown)
        {
            let Some(path) = place(&markdown) else {
                continue;
            };
            match files.is_marked(&path, mark_of(name)).await {
                Ok(true) => drop(copies.insert(markdown)),
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "an upload cannot be looked at"),
            }
        }
    }
    copies
}
