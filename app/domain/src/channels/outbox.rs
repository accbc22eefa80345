//! Outbox of messages to be sent.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Account, AccountClaim, ChannelStoreError, RowFilter};

/// Time after which an undelivered message becomes a dead letter.
pub const DELIVERY_PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// Message to be sent. Its body never changes; chat and conversation follow to the new id of a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct NewOutgoing {
    /// Id, which follows from its cause and part, so that a repetition stores it once. Idempotency
    /// keys of platforms are derived from it.
    pub id: Uuid,
    /// Bot that sends it.
    pub account: Account,
    /// Chat. The messages of one chat are sent in order.
    pub chat: String,
    /// Conversation that a reply to the sent message continues.
    pub conversation: String,
    /// Number of the part, from 0, of an answer.
    pub part: u32,
    /// Frozen content and destination; defined by the sender.
    pub body: Value,
}

/// State of an outbox row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutgoingState {
    /// Not yet sent.
    Pending,
    /// Sent.
    Sent,
    /// Dead letter: refused by the platform for good, or undelivered for [`DELIVERY_PERIOD`].
    Dead,
}

impl OutgoingState {
    /// Returns the stored text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sent => "sent",
            Self::Dead => "dead",
        }
    }

    /// Parses the stored text.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Sent, Self::Dead]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// Row of the outbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    /// The message as it was stored.
    pub message: NewOutgoing,
    /// Position in the outbox.
    pub seq: i64,
    /// State.
    pub state: OutgoingState,
    /// Number of attempts.
    pub attempts: u32,
    /// Earliest time of the next attempt.
    pub not_before: DateTime<Utc>,
    /// Results of earlier attempts, such as ids of messages on the platform; defined by the
    /// sender.
    pub progress: Value,
    /// Error of the last attempt.
    pub error: Option<String>,
    /// Ids of the sent messages on the platform.
    pub platform_ids: Vec<String>,
    /// Time of creation, or of the last request to send it again.
    pub created_at: DateTime<Utc>,
    /// Time at which it was sent or became a dead letter.
    pub ended_at: Option<DateTime<Utc>>,
}

/// Filter of the outbox.
pub type OutgoingFilter = RowFilter<OutgoingState>;

/// Lane that a refusal of the platform closes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedLane {
    /// Chat; `None` for all calls of the account.
    pub chat: Option<String>,
    /// End of the closure.
    pub until: DateTime<Utc>,
}

/// Stores messages to be sent. [`InboxStore::end`](super::InboxStore::end) stores replies together
/// with the end of their cause.
#[async_trait]
pub trait OutboxStore: Send + Sync + std::fmt::Debug {
    /// Stores messages; one whose id is known is not stored again.
    async fn enqueue(
        &self,
        claim: &AccountClaim,
        messages: Vec<NewOutgoing>,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError>;

    /// Returns the chats with pending messages.
    async fn pending_chats(&self, account: &Account) -> Result<Vec<String>, ChannelStoreError>;

    /// Returns the first pending message of a chat, due or not.
    async fn next(
        &self,
        account: &Account,
        chat: &str,
    ) -> Result<Option<Outgoing>, ChannelStoreError>;

    /// Increments the attempts of a pending message before it is sent.
    async fn begin(&self, claim: &AccountClaim, id: Uuid) -> Result<(), ChannelStoreError>;

    /// Replaces the progress of a pending message.
    async fn save_progress(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        progress: Value,
    ) -> Result<(), ChannelStoreError>;

    /// Postpones a pending message after a failed attempt. `counts` is `false` for a rate limit:
    /// the attempt is not counted.
    async fn retry(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        error: &str,
        not_before: DateTime<Utc>,
        counts: bool,
    ) -> Result<(), ChannelStoreError>;

    /// Marks a pending message as sent and stores its ids on the platform. A reply to one of them
    /// continues the message's conversation.
    async fn sent(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        platform_ids: Vec<String>,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError>;

    /// Turns a pending message into a dead letter.
    async fn bury(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        error: &str,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError>;

    /// Returns the conversation of a message that an account sent to a chat, or that
    /// [`link`](Self::link) recorded.
    async fn conversation_of(
        &self,
        account: &Account,
        chat: &str,
        platform_id: &str,
    ) -> Result<Option<String>, ChannelStoreError>;

    /// Records that a message of a chat belongs to a conversation; the first record holds.
    async fn link(
        &self,
        claim: &AccountClaim,
        chat: &str,
        platform_id: &str,
        conversation: &str,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError>;

    /// Records that a lane of the claimed account is closed; of two times the later one holds.
    async fn close_lane(
        &self,
        claim: &AccountClaim,
        lane: &ClosedLane,
    ) -> Result<(), ChannelStoreError>;

    /// Returns the lanes of an account that are closed at a time, in the order of their chats.
    async fn closed_lanes(
        &self,
        account: &Account,
        at: DateTime<Utc>,
    ) -> Result<Vec<ClosedLane>, ChannelStoreError>;

    /// Returns rows for operators, the newest first.
    async fn list(&self, filter: &OutgoingFilter) -> Result<Vec<Outgoing>, ChannelStoreError>;

    /// Turns a dead letter into a pending message again; `false` if there is no such dead letter.
    async fn resend(&self, id: Uuid, at: DateTime<Utc>) -> Result<bool, ChannelStoreError>;

    /// Returns the number of pending rows of an account.
    async fn depth(&self, account: &Account) -> Result<u64, ChannelStoreError>;

    /// Deletes at most `limit` rows: those that ended before `before`, lanes closed until then, and
    /// links recorded before `links_before`. Returns the number of rows.
    async fn forget(
        &self,
        before: DateTime<Utc>,
        links_before: DateTime<Utc>,
        limit: u64,
    ) -> Result<u64, ChannelStoreError>;
}
