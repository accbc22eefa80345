//! Chat channels: records and ports of bots on chat platforms.
//!
//! One node at a time serves a bot account; it holds the account's lease, and each of its writes
//! names the epoch of that lease. A received message is a row of the inbox before the platform gets
//! its acknowledgement. A message to be sent is a row of the outbox before it is sent.

mod account;
mod admission;
mod code;
mod connection;
mod conversation;
mod credentials;
mod error;
mod filter;
mod in_memory;
mod inbox;
mod lease;
mod no_channels;
mod outbox;
mod runtime;

pub use account::{Account, AccountClaim};
pub use admission::InboxLoad;
pub use code::{CODE_VALIDITY, ConnectCode, code_hash};
pub use connection::{
    Connection, ConnectionStore, ConsumedCode, ExternalIdentity, MAX_PENDING_CODES, NewCode,
    PendingCode,
};
pub use conversation::{Conversation, ConversationStore, OpenQuestion, renamed_key};
pub use credentials::{CredentialStore, StoredCredentials};
pub use error::ChannelStoreError;
pub use filter::RowFilter;
pub use in_memory::InMemoryChannels;
pub use inbox::{
    Acceptance, InboxBatch, InboxEnd, InboxFilter, InboxLimits, InboxMessage, InboxState,
    InboxStore, MAX_RAW_BYTES, MessageKey, NewInboxMessage, Urgency,
};
pub use lease::{AccountLeases, LeaseRecord, lease_end};
pub use no_channels::NoChannels;
pub use outbox::{
    ClosedLane, DELIVERY_PERIOD, NewOutgoing, OutboxStore, Outgoing, OutgoingFilter, OutgoingState,
};
pub use runtime::{
    ChannelField, ChannelProfile, ChannelRuntime, ChannelRuntimeError, ChannelState, ChannelStatus,
    ConnectMode, SETTINGS_ORDER,
};

/// All channel ports of one installation.
#[derive(Debug, Clone)]
pub struct ChannelStores {
    /// Leases of accounts.
    pub leases: std::sync::Arc<dyn AccountLeases>,
    /// Received messages.
    pub inbox: std::sync::Arc<dyn InboxStore>,
    /// Messages to be sent.
    pub outbox: std::sync::Arc<dyn OutboxStore>,
    /// Threads of conversations.
    pub conversations: std::sync::Arc<dyn ConversationStore>,
    /// Connected users.
    pub connections: std::sync::Arc<dyn ConnectionStore>,
    /// Credentials that were entered in the settings page.
    pub credentials: std::sync::Arc<dyn CredentialStore>,
}
