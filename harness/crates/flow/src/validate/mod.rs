//! Validation of flow documents: every problem in one pass.

mod agents;
mod analysis;
pub(crate) mod components;
mod config;
mod edges;
mod graph;
mod layout;
pub(crate) mod model;
mod options;
mod secrets;

pub(crate) use analysis::{Analysis, analyse};
pub use options::Options;

use crate::assets::PromptAssetManifest;
use crate::binding::KnownAdapters;
use crate::finding::Validation;
use crate::schema::Document;

/// Validates the text of a flow: its structure, and if that is right, its meaning.
///
/// ```
/// use deerflow_flow::assets::PromptAssetManifest;
/// use deerflow_flow::binding::AdapterList;
/// use deerflow_flow::validate::{Options, validate_text};
///
/// let text = "meta: {schemaVersion: '2.0', name: hello}
/// agents: {agentDefs: []}
/// graph:
///   startNodeId: greet
///   nodes:
///     - {nodeId: greet, nodeKind: agent.main, agentId: ghost}
///   edges: []
/// ";
/// let manifest = PromptAssetManifest::default();
/// let adapters = AdapterList::new(["fake"]);
/// let validation = validate_text(text, &manifest, &adapters, &Options::default());
/// let error = &validation.errors[0];
/// assert_eq!(error.code.as_str(), "agent_not_found");
/// assert_eq!(error.path.as_deref(), Some("/graph/nodes/0/agentId"));
/// assert_eq!(error.line, Some(6));
/// ```
pub fn validate_text(
    text: &str,
    manifest: &PromptAssetManifest,
    adapters: &dyn KnownAdapters,
    options: &Options<'_>,
) -> Validation {
    match Document::read(text) {
        Ok(document) => validate(&document, manifest, adapters, options),
        Err(validation) => validation,
    }
}

/// Validates the meaning of a document.
pub fn validate(
    document: &Document,
    manifest: &PromptAssetManifest,
    adapters: &dyn KnownAdapters,
    options: &Options<'_>,
) -> Validation {
    let analysis = analyse(document, manifest, adapters, options);
    analysis.findings.finish(|path| document.line(path))
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "hostile_tests.rs"]
mod hostile_tests;
