//! Users of this installation and their identities on chat platforms.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::ChannelStoreError;

/// Maximum number of unexpired codes per user and platform.
pub const MAX_PENDING_CODES: usize = 5;

/// Person on a platform.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExternalIdentity {
    /// Platform.
    pub provider: String,
    /// Id of the person on the platform.
    pub account: String,
    /// Workspace, guild or tenant; empty if the platform has none.
    pub workspace: String,
}

/// Namespace of connection ids.
const CONNECTION: Uuid = Uuid::from_u128(0x1b7e_92c4_5f08_4d36_8c1a_e540_7d2f_96ab);

impl ExternalIdentity {
    /// Returns the id of the connection between this identity and a user, which follows from both.
    pub fn connection_id(&self, user: &str) -> Uuid {
        let mut name = Vec::new();
        for part in [user, &self.provider, &self.account, &self.workspace] {
            name.extend_from_slice(&(part.len() as u64).to_be_bytes());
            name.extend_from_slice(part.as_bytes());
        }
        Uuid::new_v5(&CONNECTION, &name)
    }
}

/// Link between a user and an identity. An identity has at most one active connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    /// Id, see [`ExternalIdentity::connection_id`].
    pub id: Uuid,
    /// Owner.
    pub user_id: String,
    /// Linked identity.
    pub identity: ExternalIdentity,
    /// Name of the person on the platform.
    pub account_name: Option<String>,
    /// Name of the workspace.
    pub workspace_name: Option<String>,
    /// `true` until it is disconnected or another user links the identity.
    pub active: bool,
    /// Metadata for display.
    pub metadata: Map<String, Value>,
    /// Time of the first link.
    pub created_at: DateTime<Utc>,
    /// Time of the last change.
    pub updated_at: DateTime<Utc>,
}

/// Code to be stored. Only its hash is known to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCode {
    /// SHA-256 of the code in hexadecimal digits.
    pub hash: String,
    /// User who requested it.
    pub user_id: String,
    /// Platform for which it is valid.
    pub provider: String,
    /// End of its validity.
    pub expires_at: DateTime<Utc>,
}

/// Result of storing a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingCode {
    /// Stored.
    Created,
    /// The user has [`MAX_PENDING_CODES`] unexpired codes for the platform.
    TooMany,
}

/// Result of a code that a person sent to a bot.
#[derive(Debug, Clone, PartialEq)]
pub enum ConsumedCode {
    /// The code was valid; the identity is connected, and earlier connections of it are inactive.
    Connected(Box<Connection>),
    /// The code is unknown, expired, used, or for another platform.
    Invalid,
}

/// Stores connections and codes.
#[async_trait]
pub trait ConnectionStore: Send + Sync + std::fmt::Debug {
    /// Stores a code, unless the user has too many. Expired codes are deleted.
    async fn create_code(
        &self,
        code: NewCode,
        at: DateTime<Utc>,
    ) -> Result<PendingCode, ChannelStoreError>;

    /// Uses a code once and connects the identity, in one transaction. The owner's earlier
    /// connection of the same identity is activated again with its id.
    async fn consume_code(
        &self,
        hash: &str,
        identity: &ExternalIdentity,
        names: (Option<String>, Option<String>),
        at: DateTime<Utc>,
    ) -> Result<ConsumedCode, ChannelStoreError>;

    /// Returns the connections of a user, active or not, the newest first.
    async fn list(&self, user: &str) -> Result<Vec<Connection>, ChannelStoreError>;

    /// Returns the active connection of an identity.
    async fn find_active(
        &self,
        identity: &ExternalIdentity,
    ) -> Result<Option<Connection>, ChannelStoreError>;

    /// Reports whether the connections of a user are suspended, because the account is disabled.
    async fn is_suspended(&self, user: &str) -> Result<bool, ChannelStoreError>;

    /// Deactivates a connection of a user; `false` if the user has no such active connection.
    async fn disconnect(
        &self,
        user: &str,
        id: Uuid,
        at: DateTime<Utc>,
    ) -> Result<bool, ChannelStoreError>;

    /// Deactivates the connections of all users to a platform and returns their number.
    async fn disconnect_all(
        &self,
        provider: &str,
        at: DateTime<Utc>,
    ) -> Result<u64, ChannelStoreError>;
}
