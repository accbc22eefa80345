//! Decision about which messages of a batch enter the inbox.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::{Acceptance, ChannelStoreError, InboxLimits, NewInboxMessage, Urgency};

/// Content of an account's inbox that decides about a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InboxLoad {
    /// Ids of the batch that are in the inbox.
    pub known: HashSet<Uuid>,
    /// Number of waiting messages of the account that are not urgent.
    pub waiting: u64,
    /// Number of waiting messages that are not urgent, by conversation of the batch.
    pub by_conversation: HashMap<String, u64>,
}

impl InboxLoad {
    /// Decides about the messages in their order. A message that follows its own duplicate within
    /// the batch is a duplicate.
    ///
    /// # Errors
    /// [`ChannelStoreError::InboxFull`] if a new message that is not urgent exceeds the limit of
    /// the account.
    pub fn admit(
        mut self,
        messages: &[NewInboxMessage],
        limits: InboxLimits,
    ) -> Result<Vec<Acceptance>, ChannelStoreError> {
        messages
            .iter()
            .map(|message| self.admit_one(message, limits))
            .collect()
    }

    fn admit_one(
        &mut self,
        message: &NewInboxMessage,
        limits: InboxLimits,
    ) -> Result<Acceptance, ChannelStoreError> {
        let id = message.key.id();
        if self.known.contains(&id) {
            return Ok(Acceptance::Duplicate);
        }
        if message.urgency == Urgency::InOrder {
            let in_conversation = self
                .by_conversation
                .entry(message.conversation.clone())
                .or_default();
            if *in_conversation >= limits.per_conversation {
                return Ok(Acceptance::ConversationFull);
            }
            if self.waiting >= limits.per_account {
                return Err(ChannelStoreError::InboxFull);
            }
            *in_conversation += 1;
            self.waiting += 1;
        }
        self.known.insert(id);
        Ok(Acceptance::Stored)
    }
}
