//! Inbox of received messages.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::ids::RunId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Account, AccountClaim, ChannelStoreError, NewOutgoing, RowFilter};

/// Maximum size of a stored event, in bytes of its JSON text.
pub const MAX_RAW_BYTES: usize = 256 * 1024;

/// Namespace of inbox ids.
const INBOX: Uuid = Uuid::from_u128(0x6d1f_5b0a_3c52_4e1d_9a77_0f4c_21d8_be63);

/// Identity of a message on its platform, which a redelivery repeats.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MessageKey {
    /// Bot that received it.
    pub account: Account,
    /// Workspace, guild or tenant; empty if the platform has none.
    pub workspace: String,
    /// Chat.
    pub chat: String,
    /// Id of the message, unique within the chat. Other events (presses, commands of the platform)
    /// have ids with a prefix of their kind.
    pub message: String,
}

impl MessageKey {
    /// Returns the id of the inbox row, which follows from the key.
    pub fn id(&self) -> Uuid {
        let parts = [
            &self.account.provider,
            &self.account.id,
            &self.workspace,
            &self.chat,
            &self.message,
        ];
        let mut name = Vec::new();
        for part in parts {
            name.extend_from_slice(&(part.len() as u64).to_be_bytes());
            name.extend_from_slice(part.as_bytes());
        }
        Uuid::new_v5(&INBOX, &name)
    }
}

/// Order of a message within its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Urgency {
    /// Handled after the earlier messages of its conversation.
    InOrder,
    /// Handled at once: a request to stop, or an answer to a question of the active run.
    Immediate,
}

/// Received message to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewInboxMessage {
    /// Identity on the platform.
    pub key: MessageKey,
    /// Key of the conversation, unique within the account.
    pub conversation: String,
    /// Order within the conversation.
    pub urgency: Urgency,
    /// Normalized event as JSON, at most [`MAX_RAW_BYTES`].
    pub event: Value,
}

/// Messages that are stored in one transaction, with the position of the platform's stream behind
/// them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InboxBatch {
    /// Messages in the order of their arrival.
    pub messages: Vec<NewInboxMessage>,
    /// New cursor of the account; `None` leaves it unchanged.
    pub cursor: Option<String>,
}

/// Maximum numbers of waiting messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxLimits {
    /// Per account.
    pub per_account: u64,
    /// Per conversation. Urgent messages do not count and are always accepted.
    pub per_conversation: u64,
}

impl Default for InboxLimits {
    fn default() -> Self {
        Self {
            per_account: 10_000,
            per_conversation: 100,
        }
    }
}

/// Result for one message of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// The message was stored.
    Stored,
    /// The message is already in the inbox.
    Duplicate,
    /// Too many messages of its conversation are waiting; it was not stored.
    ConversationFull,
}

/// State of an inbox row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxState {
    /// Not handled to its end.
    Waiting,
    /// Handled; its replies are in the outbox.
    Answered,
    /// Refused; the sender was informed, unless the rules require silence.
    Refused,
    /// Abandoned after repeated failures.
    SetAside,
}

impl InboxState {
    /// Returns the stored text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::SetAside => "set_aside",
        }
    }

    /// Parses the stored text.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Waiting, Self::Answered, Self::Refused, Self::SetAside]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// Row of the inbox.
#[derive(Debug, Clone, PartialEq)]
pub struct InboxMessage {
    /// Id, derived from the key.
    pub id: Uuid,
    /// Position in the inbox; it grows with each stored message of the installation.
    pub seq: i64,
    /// Identity on the platform.
    pub key: MessageKey,
    /// Key of the conversation.
    pub conversation: String,
    /// Order within the conversation.
    pub urgency: Urgency,
    /// Normalized event.
    pub event: Value,
    /// State.
    pub state: InboxState,
    /// Reason of the state or of the last failure.
    pub note: Option<String>,
    /// Number of times that a node began to handle it.
    pub claims: u32,
    /// Number of failed attempts.
    pub failures: u32,
    /// Time of the first failed attempt.
    pub failed_since: Option<DateTime<Utc>>,
    /// Earliest time of the next attempt.
    pub not_before: Option<DateTime<Utc>>,
    /// Steps done so far, such as the live message on the platform; defined by the worker.
    pub progress: Value,
    /// Time of receipt.
    pub received_at: DateTime<Utc>,
    /// Time of the end.
    pub ended_at: Option<DateTime<Utc>>,
}

impl InboxMessage {
    /// Returns the id of the row's run. A repeated attempt creates the same run.
    pub fn run_id(&self) -> RunId {
        Uuid::new_v5(&self.id, b"run").into()
    }
}

/// End of inbox rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxEnd {
    /// Final state; not [`InboxState::Waiting`].
    pub state: InboxState,
    /// Reason, for operators.
    pub note: Option<String>,
}

/// Filter of the inbox.
pub type InboxFilter = RowFilter<InboxState>;

/// Stores received messages and the cursors of accounts.
#[async_trait]
pub trait InboxStore: Send + Sync + std::fmt::Debug {
    /// Stores the messages of a batch that are new, and its cursor, in one transaction. Returns one
    /// result per message, in the same order.
    ///
    /// # Errors
    /// [`ChannelStoreError::Fenced`]; [`ChannelStoreError::InboxFull`] if a new message that is not
    /// urgent exceeds the limit of the account, and then nothing is written.
    async fn accept(
        &self,
        claim: &AccountClaim,
        batch: InboxBatch,
        limits: InboxLimits,
        at: DateTime<Utc>,
    ) -> Result<Vec<Acceptance>, ChannelStoreError>;

    /// Returns the stored cursor of an account.
    async fn cursor(&self, account: &Account) -> Result<Option<String>, ChannelStoreError>;

    /// Returns the conversations with waiting messages, with the urgency of these messages; one
    /// entry per conversation and urgency, ordered by their first message.
    async fn waiting_conversations(
        &self,
        account: &Account,
    ) -> Result<Vec<(String, Urgency)>, ChannelStoreError>;

    /// Returns the first waiting messages of a conversation in the order of `seq`.
    async fn waiting(
        &self,
        account: &Account,
        conversation: &str,
        urgency: Urgency,
        limit: u64,
    ) -> Result<Vec<InboxMessage>, ChannelStoreError>;

    /// Increments `claims` of waiting rows before they are handled.
    async fn begin(&self, claim: &AccountClaim, ids: &[Uuid]) -> Result<(), ChannelStoreError>;

    /// Replaces the progress of a waiting row.
    async fn save_progress(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        progress: Value,
    ) -> Result<(), ChannelStoreError>;

    /// Records a failed attempt of waiting rows and the earliest time of the next one.
    async fn fail(
        &self,
        claim: &AccountClaim,
        ids: &[Uuid],
        note: &str,
        not_before: DateTime<Utc>,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError>;

    /// Ends rows and stores their replies in one transaction. Rows that have ended keep their end,
    /// and replies whose id is known are not stored again.
    async fn end(
        &self,
        claim: &AccountClaim,
        ids: &[Uuid],
        end: InboxEnd,
        replies: Vec<NewOutgoing>,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError>;

    /// Returns rows for operators, the newest first.
    async fn list(&self, filter: &InboxFilter) -> Result<Vec<InboxMessage>, ChannelStoreError>;

    /// Returns the number of waiting rows of an account, and the time of receipt of the oldest.
    async fn backlog(
        &self,
        account: &Account,
    ) -> Result<(u64, Option<DateTime<Utc>>), ChannelStoreError>;

    /// Deletes at most `limit` rows that ended before `before`; returns their number. A deleted row
    /// no longer detects duplicates.
    async fn forget(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, ChannelStoreError>;
}
