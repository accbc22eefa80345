//! Conversations in memory.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::{InMemoryChannels, Tables};
use crate::channels::conversation::renamed_key;
use crate::channels::{
    Account, AccountClaim, ChannelStoreError, Conversation, ConversationStore, InboxState,
    OutgoingState,
};

#[async_trait]
impl ConversationStore for InMemoryChannels {
    async fn find(
        &self,
        account: &Account,
        key: &str,
    ) -> Result<Option<Conversation>, ChannelStoreError> {
        let key = (account.clone(), key.to_owned());
        Ok(self.0.lock().conversations.get(&key).cloned())
    }

    async fn create(
        &self,
        claim: &AccountClaim,
        conversation: Conversation,
    ) -> Result<Conversation, ChannelStoreError> {
        let mut tables = self.0.lock();
        tables.fence(claim, [&conversation.account])?;
        let key = (conversation.account.clone(), conversation.key.clone());
        Ok(tables
            .conversations
            .entry(key)
            .or_insert(conversation)
            .clone())
    }

    async fn update(
        &self,
        claim: &AccountClaim,
        conversation: &Conversation,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let mut tables = self.0.lock();
        tables.fence(claim, [&conversation.account])?;
        let key = (conversation.account.clone(), conversation.key.clone());
        if let Some(stored) = tables.conversations.get_mut(&key) {
            stored.thread_id = conversation.thread_id.clone();
            stored.user_id.clone_from(&conversation.user_id);
            stored.options.clone_from(&conversation.options);
            stored.question.clone_from(&conversation.question);
            stored.updated_at = at;
        }
        Ok(())
    }

    async fn rename_chat(
        &self,
        claim: &AccountClaim,
        from: &str,
        to: &str,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let mut tables = self.0.lock();
        tables.fence(claim, [])?;
        let of_chat: Vec<Conversation> = tables
            .conversations
            .values()
            .filter(|stored| stored.account == claim.account && stored.chat == from)
            .cloned()
            .collect();
        for stored in of_chat {
            tables.rename(stored, from, to, at);
        }
        tables.rename_waiting(&claim.account, from, to);
        tables.rename_unsent(&claim.account, from, to);
        Ok(())
    }

    async fn import(&self, conversations: Vec<Conversation>) -> Result<u64, ChannelStoreError> {
        let mut tables = self.0.lock();
        let before = tables.conversations.len();
        for conversation in conversations {
            let key = (conversation.account.clone(), conversation.key.clone());
            tables.conversations.entry(key).or_insert(conversation);
        }
        Ok((tables.conversations.len() - before) as u64)
    }
}

impl Tables {
    fn rename_waiting(&mut self, account: &Account, from: &str, to: &str) {
        let waiting = self.inbox.values_mut().filter(|row| {
            row.state == InboxState::Waiting && row.claims == 0 && row.key.account == *account
        });
        for row in waiting.filter(|row| row.key.chat == from) {
            row.key.chat = to.to_owned();
            row.conversation = renamed_key(&row.conversation, from, to);
        }
    }

    fn rename_unsent(&mut self, account: &Account, from: &str, to: &str) {
        let unsent = self.outbox.values_mut().filter(|row| {
            row.state != OutgoingState::Sent
                && row.message.account == *account
                && row.message.chat == from
        });
        for row in unsent {
            row.message.chat = to.to_owned();
            row.message.conversation = renamed_key(&row.message.conversation, from, to);
        }
    }

    fn rename(&mut self, stored: Conversation, from: &str, to: &str, at: DateTime<Utc>) {
        let (account, old_key) = (stored.account.clone(), stored.key.clone());
        let new_key = renamed_key(&old_key, from, to);
        let new_entry = (account.clone(), new_key.clone());
        if new_key != old_key && self.conversations.contains_key(&new_entry) {
            return;
        }
        self.conversations
            .remove(&(account.clone(), old_key.clone()));
        let moved = Conversation {
            key: new_key.clone(),
            chat: to.to_owned(),
            updated_at: at,
            ..stored
        };
        self.conversations.insert(new_entry, moved);
        let linked = self
            .links
            .iter()
            .filter(|((of, chat, _), (key, _))| *of == account && chat == from && *key == old_key);
        let linked: Vec<_> = linked
            .map(|((_, _, message), (_, since))| (message.clone(), *since))
            .collect();
        for (message, since) in linked {
            self.links
                .remove(&(account.clone(), from.to_owned(), message.clone()));
            self.links
                .entry((account.clone(), to.to_owned(), message))
                .or_insert((new_key.clone(), since));
        }
    }
}
