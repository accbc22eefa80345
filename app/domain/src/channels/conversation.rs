//! Conversations of chats and their threads.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::ids::{RunId, ThreadId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Account, AccountClaim, ChannelStoreError};

/// Question of a run that a person of the conversation has to answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Run that asks.
    pub run_id: RunId,
    /// Id of its interrupt; `None` for a question that the next message answers as a new turn.
    pub interrupt: Option<String>,
    /// Person, by the id on the platform, whose answer counts.
    pub asker: String,
    /// Offered answers; empty if any text answers.
    pub options: Vec<String>,
    /// Token that buttons of this question carry.
    pub token: String,
}

/// A chat, topic or reply chain, and the thread that it continues.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    /// Bot.
    pub account: Account,
    /// Key, unique within the account.
    pub key: String,
    /// Chat on the platform.
    pub chat: String,
    /// Topic or thread on the platform.
    pub topic: Option<String>,
    /// Thread of the agent.
    pub thread_id: ThreadId,
    /// Owner of the thread.
    pub user_id: String,
    /// Choices of the people in it, such as `model_name`.
    pub options: Map<String, Value>,
    /// Question that waits for an answer.
    pub question: Option<OpenQuestion>,
    /// Time of the first message.
    pub created_at: DateTime<Utc>,
    /// Time of the last change.
    pub updated_at: DateTime<Utc>,
}

/// Returns the key of a conversation after its chat got a new id: in a key that equals the old id
/// or starts with it and a colon, the old id is replaced.
pub fn renamed_key(key: &str, from: &str, to: &str) -> String {
    match key.strip_prefix(from) {
        Some(rest) if rest.is_empty() || rest.starts_with(':') => format!("{to}{rest}"),
        _ => key.to_owned(),
    }
}

/// Stores conversations.
#[async_trait]
pub trait ConversationStore: Send + Sync + std::fmt::Debug {
    /// Returns the conversation of a key.
    async fn find(
        &self,
        account: &Account,
        key: &str,
    ) -> Result<Option<Conversation>, ChannelStoreError>;

    /// Stores a conversation and returns the stored one, which is the existing one if the key is
    /// known. `created_at` of the argument is the time of creation.
    async fn create(
        &self,
        claim: &AccountClaim,
        conversation: Conversation,
    ) -> Result<Conversation, ChannelStoreError>;

    /// Replaces thread, owner, options and question of an existing conversation.
    async fn update(
        &self,
        claim: &AccountClaim,
        conversation: &Conversation,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError>;

    /// Moves the conversations of a chat, with their links, to the chat's new id. In keys that
    /// equal the old id or start with it and a colon, the old id is replaced. Conversations whose
    /// new key exists are not moved. Waiting messages of the chat that were never begun, and messages
    /// to the chat that were not sent, follow to the new id and key.
    async fn rename_chat(
        &self,
        claim: &AccountClaim,
        from: &str,
        to: &str,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError>;

    /// Stores conversations of another installation whose keys are unknown; returns their number.
    /// Needs no claim: an import runs before the account is served.
    async fn import(&self, conversations: Vec<Conversation>) -> Result<u64, ChannelStoreError>;
}
