//! Bot accounts and the right to serve one.

use serde::{Deserialize, Serialize};

/// One bot on one platform.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Account {
    /// Name of the platform, such as `telegram`.
    pub provider: String,
    /// Id of the bot on the platform.
    pub id: String,
}

impl Account {
    /// Creates the account of a bot.
    pub fn new(provider: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            id: id.into(),
        }
    }
}

impl std::fmt::Display for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.provider, self.id)
    }
}

/// The right of a node to serve an account. A store refuses writes whose epoch is not the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountClaim {
    /// Served account.
    pub account: Account,
    /// Number of this claim; each acquisition of the account increments it.
    pub epoch: i64,
    /// Id of the node; empty after a revocation.
    pub node: String,
}
