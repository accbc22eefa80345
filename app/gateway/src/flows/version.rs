//! A flow of a user or of the system, as runs and clients receive it.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use deerflow_domain::flows::{FlowContent, FlowRecord, FlowSummary, StoredFlow};
use deerflow_flow::finding::Finding;
use harness::runtime::agent::AssistantPin;

/// Owner of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowOwner {
    /// The operator; all users may run it, and none may change it.
    System,
    /// The user.
    User,
}

impl FlowOwner {
    /// Returns the value used on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
        }
    }
}

/// A flow in one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowVersion {
    /// Id.
    pub slug: String,
    /// Owner.
    pub owner: FlowOwner,
    /// Number of the version.
    pub version: u32,
    /// Hash of the content.
    pub content_hash: String,
    /// Text and assets.
    pub content: Arc<FlowContent>,
    /// Creation time of the flow; `None` for a pinned version whose flow is gone.
    pub created_at: Option<DateTime<Utc>>,
    /// Creation time of the version; `None` for a pinned version whose flow is gone or newer.
    pub updated_at: Option<DateTime<Utc>>,
}

impl FlowVersion {
    /// Creates the version of a user's flow.
    pub(super) fn of_user(slug: &str, stored: StoredFlow) -> Self {
        Self {
            slug: slug.to_owned(),
            owner: FlowOwner::User,
            version: stored.version.version,
            content_hash: stored.version.content_hash,
            content: Arc::new(stored.content),
            created_at: Some(stored.created_at),
            updated_at: Some(stored.version.created_at),
        }
    }

    /// Returns the version as a run stores it.
    pub fn pin(&self) -> AssistantPin {
        AssistantPin {
            version: self.version.into(),
            content_hash: self.content_hash.clone(),
        }
    }
}

/// Entry of a list of flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowListing {
    /// Owner.
    pub owner: FlowOwner,
    /// The flow in its current version.
    pub record: FlowRecord,
    /// Errors of a newer content of a system flow, which is not used.
    pub errors: Vec<Finding>,
}

impl FlowListing {
    /// Returns the summary of the current content.
    pub fn summary(&self) -> &FlowSummary {
        &self.record.summary
    }
}
