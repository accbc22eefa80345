//! Usage of auxiliary model requests, which are made for a user outside of runs.

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
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::Mutex;
///
/// use async_trait::async_trait;
/// use deerflow_runtime::runs::store::{AuxiliaryUsage, StoreError, UsageLedger};
///
/// /// Ledger in memory, by the id of the entries.
/// #[derive(Debug, Default)]
/// struct Ledger(Mutex<HashMap<String, AuxiliaryUsage>>);
///
/// #[async_trait]
/// impl UsageLedger for Ledger {
///     async fn book(&self, costs: Vec<AuxiliaryUsage>) -> Result<(), StoreError> {
///         let entries = costs.into_iter().map(|entry| (entry.id.clone(), entry));
///         self.0.lock().unwrap().extend(entries);
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait UsageLedger: Send + Sync + std::fmt::Debug {
    /// Records entries, each once by its id.
    async fn book(&self, costs: Vec<AuxiliaryUsage>) -> Result<(), StoreError>;
}
