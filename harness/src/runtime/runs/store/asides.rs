//! What models were asked for users beside runs.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::messages::UsageMetadata;

/// What one such question cost.
#[derive(Debug, Clone, PartialEq)]
pub struct AsideCost {
    /// Its own id.
    pub id: String,
    /// Who pays.
    pub user_id: Option<String>,
    /// The entry that answered.
    pub model: String,
    /// The tokens.
    pub usage: UsageMetadata,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// Where such costs are kept, with a thread they belong to or without.
#[async_trait]
pub trait AsideLedger: Send + Sync + std::fmt::Debug {
    /// Keeps them, each once by its id.
    async fn book(&self, costs: Vec<AsideCost>) -> Result<(), StoreError>;
}
