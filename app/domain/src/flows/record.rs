//! Flows as they are stored: their content, versions and summaries.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Maximum size of the text of a flow, in bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 20;
/// Maximum number of assets of a flow.
pub const MAX_ASSETS: usize = 500;
/// Maximum size of all assets of a flow together, in bytes.
pub const MAX_ASSETS_BYTES: usize = 4 << 20;
/// Maximum length of a slug, so that the graph name `flow-<slug>` has at most 64 characters.
pub const MAX_SLUG_CHARS: usize = 59;

/// Reports whether a text is a slug: 1 to 59 lower-case letters, digits and inner hyphens.
pub fn is_slug(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.len() <= MAX_SLUG_CHARS
        && bytes.first().is_some_and(|byte| is_plain(*byte))
        && bytes.last().is_some_and(|byte| is_plain(*byte))
        && bytes.iter().all(|byte| is_plain(*byte) || *byte == b'-')
}

/// Returns the slug of a name: other characters become hyphens. `None` if nothing remains.
pub fn slug_of(name: &str) -> Option<String> {
    let mut slug = String::new();
    for c in name.chars() {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() == MAX_SLUG_CHARS {
            break;
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    is_slug(&slug).then_some(slug)
}

/// A file of a flow's project: a prompt, an instruction or a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowAsset {
    /// Path relative to the project, with `/`.
    pub path: String,
    /// Text.
    pub text: String,
}

/// Content of one version: the document as it was sent, and the files of its project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowContent {
    /// Document, YAML or JSON.
    pub text: String,
    /// Files in the order of their paths.
    pub assets: Vec<FlowAsset>,
}

impl FlowContent {
    /// Creates content; sorts the assets by path.
    pub fn new(text: impl Into<String>, mut assets: Vec<FlowAsset>) -> Self {
        assets.sort_by(|a, b| a.path.cmp(&b.path));
        Self {
            text: text.into(),
            assets,
        }
    }

    /// Returns the SHA-256 of text and assets as lower-case hex. Every part is preceded by its
    /// length, so that different contents never have the same bytes.
    pub fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        let assets = self.assets.iter();
        let parts =
            std::iter::once(&self.text).chain(assets.flat_map(|asset| [&asset.path, &asset.text]));
        for part in parts {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        hex::encode(hasher.finalize())
    }
}

/// Summary of a flow's document for lists.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Name.
    pub name: String,
    /// Description.
    pub description: Option<String>,
    /// Version of the document format.
    pub schema_version: String,
    /// Number of nodes.
    pub node_count: u64,
    /// Number of agent definitions.
    pub agent_count: u64,
}

/// A flow of a user in its current version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowRecord {
    /// Id, unique for the user.
    pub slug: String,
    /// Number of the current version; the first is 1.
    pub version: u32,
    /// Hash of the current content; see [`FlowContent::hash`].
    pub content_hash: String,
    /// Summary of the current content.
    pub summary: FlowSummary,
    /// Creation time of the flow.
    pub created_at: DateTime<Utc>,
    /// Creation time of the version.
    pub updated_at: DateTime<Utc>,
}

/// One version of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowVersionRecord {
    /// Number.
    pub version: u32,
    /// Hash of its content.
    pub content_hash: String,
    /// Summary of its content.
    pub summary: FlowSummary,
    /// Creation time.
    pub created_at: DateTime<Utc>,
}

/// A flow with the content of one of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFlow {
    /// Creation time of the flow.
    pub created_at: DateTime<Utc>,
    /// Version.
    pub version: FlowVersionRecord,
    /// Content of the version.
    pub content: FlowContent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slug_has_1_to_59_lower_case_letters_digits_and_hyphens() {
        for good in ["a", "a-b", "1", &"x".repeat(59)] {
            assert!(is_slug(good), "{good}");
        }
        for bad in [
            "",
            "-a",
            "a-",
            "A",
            "a_b",
            "a.b",
            "ä",
            "a/b",
            &"x".repeat(60),
        ] {
            assert!(!is_slug(bad), "{bad}");
        }
    }

    #[test]
    fn slug_of_name_replaces_other_characters() {
        let slug = |name: &str| slug_of(name);
        assert_eq!(
            slug("Plan, Execute & Judge"),
            Some("plan-execute-judge".to_owned())
        );
        assert_eq!(slug("__a__"), Some("a".to_owned()));
        assert_eq!(slug("日本"), None);
        assert_eq!(
            slug(&"ab ".repeat(40)).map(|slug| is_slug(&slug)),
            Some(true)
        );
    }

    #[test]
    fn hash_depends_on_text_and_on_each_asset() {
        let asset = |path: &str, text: &str| FlowAsset {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let contents = [
            FlowContent::new("ab", vec![]),
            FlowContent::new("a", vec![asset("b", "")]),
            FlowContent::new("a", vec![asset("", "b")]),
            FlowContent::new("a", vec![asset("b", "c")]),
            FlowContent::new("a", vec![asset("bc", "")]),
        ];
        let hashes: std::collections::BTreeSet<String> =
            contents.iter().map(FlowContent::hash).collect();
        assert_eq!(hashes.len(), contents.len());
        let order = |assets| FlowContent::new("a", assets).hash();
        assert_eq!(
            order(vec![asset("b", "1"), asset("a", "2")]),
            order(vec![asset("a", "2"), asset("b", "1")])
        );
    }
}
