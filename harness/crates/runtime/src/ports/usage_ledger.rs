//! Usage of auxiliary model requests: those made for a user outside of runs.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::definition::StoreError;
use deerflow_core::messages::UsageMetadata;

/// Usage of one auxiliary request.
#[derive(Debug, Clone, PartialEq)]
pub struct AuxiliaryUsage {
    /// Unique id of the entry.
    pub id: String,
    /// User who is charged.
    pub user_id: Option<String>,
    /// Model entry that answered.
    pub model: String,
    /// Tokens used.
    pub usage: UsageMetadata,
    /// Time of the request.
    pub created_at: DateTime<Utc>,
}

/// Stores auxiliary usage, with or without the thread that it belongs to.
#[async_trait]
pub trait UsageLedger: Send + Sync + std::fmt::Debug {
    /// Records entries, each once by its id.
    async fn book(&self, costs: Vec<AuxiliaryUsage>) -> Result<(), StoreError>;
}
