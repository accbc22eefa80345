//! A finding and the result of a validation.

use serde::{Deserialize, Serialize};

use super::code::FindingCode;

/// Maximum characters of a message.
const MAX_MESSAGE: usize = 1_000;
/// Maximum characters of an id or a name in a finding.
const MAX_ID: usize = 200;

/// One problem of a flow document and its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Code.
    pub code: FindingCode,
    /// Problem and what would be right, for people. Never contains the value of a secret.
    pub message: String,
    /// Place in the document, as a JSON pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// Index of an edge in `graph.edges`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edge_index: Option<usize>,
    /// Agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Port or routing handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// Key of a setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Line in the text of the document, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

impl Finding {
    /// Creates a finding without a place.
    pub fn new(code: FindingCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            path: None,
            node_id: None,
            edge_index: None,
            agent_id: None,
            handle: None,
            field: None,
            line: None,
        }
    }

    /// Returns the finding with printable texts of bounded length: ids and names in it are those
    /// of a client.
    pub(super) fn bounded(mut self) -> Self {
        self.message = printable(&self.message, MAX_MESSAGE);
        let ids = [
            &mut self.node_id,
            &mut self.agent_id,
            &mut self.handle,
            &mut self.field,
        ];
        for id in ids.into_iter().flatten() {
            if id.len() > MAX_ID {
                *id = printable(id, MAX_ID);
            }
        }
        self
    }

    /// Sets the place as a JSON pointer.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets the node.
    #[must_use]
    pub fn node(mut self, node: impl Into<String>) -> Self {
        self.node_id = Some(node.into());
        self
    }

    /// Sets the index of the edge, and its place if none is set.
    #[must_use]
    pub fn edge(mut self, index: usize) -> Self {
        self.edge_index = Some(index);
        self.path
            .get_or_insert_with(|| format!("/graph/edges/{index}"));
        self
    }

    /// Sets the agent.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent_id = Some(agent.into());
        self
    }

    /// Sets the port or routing handle.
    #[must_use]
    pub fn handle(mut self, handle: impl Into<String>) -> Self {
        self.handle = Some(handle.into());
        self
    }

    /// Sets the key of the setting.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }
}

/// Cuts a text and replaces control characters.
fn printable(text: &str, limit: usize) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut printable: String = text.chars().take(limit).map(plain).collect();
    if text.chars().nth(limit).is_some() {
        printable.push('…');
    }
    printable
}

/// Result of a validation: all findings of one pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validation {
    /// `true` if there are no errors.
    pub valid: bool,
    /// Findings that prevent runs.
    pub errors: Vec<Finding>,
    /// Findings that do not.
    pub warnings: Vec<Finding>,
}
