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

/// The first line of Markdown that was made of a document, by which it is told from a file of the user's own.
pub const MADE: &str = "<!-- converted from the document of this name -->";

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
        let headings = self.headings.iter().map(|Heading { line, title }| format!("L{line}: {title}"));
        let more = self.truncated.then(|| "... more headings follow".to_owned());
        markdown.chain(headings).chain(more).chain(self.preview.iter().map(|line| format!("> {line}")))
    }
}

/// Looks at an upload: at its Markdown if it is a document, at itself if it is Markdown. Of other files nothing is known.
pub async fn glimpse(files: &ThreadFiles, name: &str) -> Glimpse {
    let (text_name, converted) = match DocumentKind::of_file(name) {
        Some((_, markdown)) => (markdown, true),
        None if name.to_ascii_lowercase().ends_with(".md") => (name.to_owned(), false),
        None => return Glimpse::default(),
    };
    let Some(path) = place(&text_name) else { return Glimpse::default() };
    let Ok(bytes) = files.read_bytes(&path, LARGEST).await else { return Glimpse::default() };
    let text = String::from_utf8_lossy(&bytes);
    if converted && !text.starts_with(MADE) {
        // A file of the user's own, about whatever it is.
        return Glimpse::default();
    }
    let found = outline(&text);
    let preview = if found.headings.is_empty() { preview(&text) } else { Vec::new() };
    let markdown = converted.then(|| path.to_string());
    Glimpse { markdown, headings: found.headings, truncated: found.truncated, preview }
}

fn preview(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && *line != MADE);
    lines.take(PREVIEW).map(|line| line.chars().take(LONGEST_LINE).collect()).collect()
}

fn place(name: &str) -> Option<VirtualPath> {
    VirtualPath::parse(&format!("{}/{name}", VirtualPath::of_root(Root::Uploads))).ok()
}

/// Which files were made of one of these.
pub async fn hidden_copies(files: &ThreadFiles, names: &[&str]) -> HashSet<String> {
    let mut copies = HashSet::new();
    for (_, markdown) in names.iter().copied().filter_map(DocumentKind::of_file) {
        let Some(path) = place(&markdown) else { continue };
        match files.is_marked(&path, MADE).await {
            Ok(true) => drop(copies.insert(markdown)),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "an upload cannot be looked at"),
        }
    }
    copies
}
