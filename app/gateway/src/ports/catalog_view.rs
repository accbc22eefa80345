//! Port of the configuration as clients may see it.

use std::fmt;
use std::sync::Arc;

use deerflow_domain::flows::FlowQuota;
use harness::config::LimitsConfig;
use harness::documents::DocumentReader;
use harness::models::{ModelFacts, Pricing};
use harness::runtime::runs::ThreadTtl;
use harness::uploads::UploadLimits;
use harness::user_memory::MemoryView;
use serde::Serialize;

/// Enabled features.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FeatureView {
    /// Custom agents over HTTP.
    pub agents_api: bool,
    /// A browser under the agent's control.
    pub browser_control: bool,
    /// Long-running MCP tasks.
    pub mcp_tasks: bool,
    /// Token counts in the interface.
    pub token_usage: bool,
}

/// Settings of follow-up suggestions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SuggestionsView {
    /// `true` if suggestions are enabled.
    pub enabled: bool,
    /// Maximum number of suggestions, 1 to 5.
    pub max_suggestions: u8,
}

/// The configuration as clients may see it. It is read at each request, so that a reload takes
/// effect at once.
pub trait CatalogView: Send + Sync + fmt::Debug {
    /// Models in the order of the configuration.
    fn models(&self) -> Vec<ModelFacts>;
    /// Enabled features.
    fn features(&self) -> FeatureView;
    /// Settings of follow-up suggestions.
    fn suggestions(&self) -> SuggestionsView;
    /// Settings of user memory.
    fn memory(&self) -> MemoryView;
    /// Limits of uploads.
    fn uploads(&self) -> UploadLimits;
    /// Token prices of a model entry, if configured.
    fn pricing(&self, model: &str) -> Option<Pricing>;
    /// Converter of uploaded documents to Markdown; `None` if documents are not converted.
    fn documents(&self) -> Option<Arc<dyn DocumentReader>> {
        None
    }
    /// Maximum sizes of the fields that clients store.
    fn field_limits(&self) -> LimitsConfig {
        LimitsConfig::default()
    }
    /// Limits of the flows of one user.
    fn flow_quota(&self) -> FlowQuota;
    /// Default time to live of new threads after their last change; `None` means no expiry.
    fn thread_ttl(&self) -> Option<ThreadTtl> {
        None
    }
}
