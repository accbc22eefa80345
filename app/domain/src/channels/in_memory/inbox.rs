//! Inbox in memory.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::{InMemoryChannels, Tables};
use crate::channels::{
    Acceptance, Account, AccountClaim, ChannelStoreError, InboxBatch, InboxEnd, InboxFilter,
    InboxLimits, InboxLoad, InboxMessage, InboxState, InboxStore, NewInboxMessage, NewOutgoing,
    Urgency,
};

#[async_trait]
impl InboxStore for InMemoryChannels {
    async fn accept(
        &self,
        claim: &AccountClaim,
        batch: InboxBatch,
        limits: InboxLimits,
        at: DateTime<Utc>,
    ) -> Result<Vec<Acceptance>, ChannelStoreError> {
        let mut tables = self.0.lock();
        tables.fence(
            claim,
            batch.messages.iter().map(|message| &message.key.account),
        )?;
        let accepted = tables
            .load(&claim.account, &batch.messages)
            .admit(&batch.messages, limits)?;
        for (message, acceptance) in batch.messages.into_iter().zip(&accepted) {
            if *acceptance == Acceptance::Stored {
                tables.store(message, at);
            }
        }
        if let Some(cursor) = batch.cursor {
            tables.cursors.insert(claim.account.clone(), cursor);
        }
        Ok(accepted)
    }

    async fn cursor(&self, account: &Account) -> Result<Option<String>, ChannelStoreError> {
        Ok(self.0.lock().cursors.get(account).cloned())
    }

    async fn waiting_conversations(
        &self,
        account: &Account,
    ) -> Result<Vec<(String, Urgency)>, ChannelStoreError> {
        let tables = self.0.lock();
        let mut found = Vec::new();
        for row in tables.waiting_in(account) {
            let entry = (row.conversation.clone(), row.urgency);
            if !found.contains(&entry) {
                found.push(entry);
            }
        }
        Ok(found)
    }

    async fn waiting(
        &self,
        account: &Account,
        conversation: &str,
        urgency: Urgency,
        limit: u64,
    ) -> Result<Vec<InboxMessage>, ChannelStoreError> {
        let tables = self.0.lock();
        let rows = tables
            .waiting_in(account)
            .filter(|row| row.conversation == conversation && row.urgency == urgency);
        Ok(rows.take(bounded(limit)).cloned().collect())
    }

    async fn begin(&self, claim: &AccountClaim, ids: &[Uuid]) -> Result<(), ChannelStoreError> {
        self.change(claim, ids, |row| row.claims = row.claims.saturating_add(1))
    }

    async fn save_progress(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        progress: Value,
    ) -> Result<(), ChannelStoreError> {
        self.change(claim, &[id], |row| row.progress = progress.clone())
    }

    async fn fail(
        &self,
        claim: &AccountClaim,
        ids: &[Uuid],
        note: &str,
        not_before: DateTime<Utc>,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        self.change(claim, ids, |row| {
            row.failures = row.failures.saturating_add(1);
            row.failed_since.get_or_insert(at);
            row.not_before = Some(not_before);
            row.note = Some(note.to_owned());
        })
    }

    async fn end(
        &self,
        claim: &AccountClaim,
        ids: &[Uuid],
        end: InboxEnd,
        replies: Vec<NewOutgoing>,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let mut tables = self.0.lock();
        tables.fence(claim, replies.iter().map(|reply| &reply.account))?;
        for id in ids {
            if let Some(row) = tables.waiting_row(&claim.account, *id) {
                row.state = end.state;
                row.note.clone_from(&end.note);
                row.ended_at = Some(at);
            }
        }
        tables.add_outgoing(replies, at);
        Ok(())
    }

    async fn list(&self, filter: &InboxFilter) -> Result<Vec<InboxMessage>, ChannelStoreError> {
        let tables = self.0.lock();
        let rows = tables.inbox.values().rev();
        let rows = rows.filter(|row| filter.matches(&row.key.account.provider, &row.state));
        Ok(rows.take(bounded(filter.limit)).cloned().collect())
    }

    async fn backlog(
        &self,
        account: &Account,
    ) -> Result<(u64, Option<DateTime<Utc>>), ChannelStoreError> {
        let tables = self.0.lock();
        let oldest = tables.waiting_in(account).map(|row| row.received_at).min();
        Ok((tables.waiting_in(account).count() as u64, oldest))
    }

    async fn forget(&self, before: DateTime<Utc>, limit: u64) -> Result<u64, ChannelStoreError> {
        let mut tables = self.0.lock();
        let ended = tables
            .inbox
            .values()
            .filter(|row| row.ended_at.is_some_and(|at| at < before));
        let gone: Vec<(i64, Uuid)> = ended
            .map(|row| (row.seq, row.id))
            .take(bounded(limit))
            .collect();
        for (seq, id) in &gone {
            tables.inbox.remove(seq);
            tables.inbox_ids.remove(id);
        }
        Ok(gone.len() as u64)
    }
}

impl InMemoryChannels {
    /// Changes waiting rows of the claimed account.
    fn change(
        &self,
        claim: &AccountClaim,
        ids: &[Uuid],
        change: impl Fn(&mut InboxMessage),
    ) -> Result<(), ChannelStoreError> {
        let mut tables = self.0.lock();
        tables.fence(claim, [])?;
        for id in ids {
            if let Some(row) = tables.waiting_row(&claim.account, *id) {
                change(row);
            }
        }
        Ok(())
    }
}

impl Tables {
    fn waiting_in<'a>(&'a self, account: &'a Account) -> impl Iterator<Item = &'a InboxMessage> {
        self.inbox
            .values()
            .filter(move |row| row.state == InboxState::Waiting && row.key.account == *account)
    }

    fn waiting_row(&mut self, account: &Account, id: Uuid) -> Option<&mut InboxMessage> {
        let seq = self.inbox_ids.get(&id)?;
        self.inbox
            .get_mut(seq)
            .filter(|row| row.state == InboxState::Waiting && row.key.account == *account)
    }

    fn load(&self, account: &Account, messages: &[NewInboxMessage]) -> InboxLoad {
        let mut load = InboxLoad::default();
        for row in self.waiting_in(account) {
            if row.urgency == Urgency::InOrder {
                load.waiting += 1;
                *load
                    .by_conversation
                    .entry(row.conversation.clone())
                    .or_default() += 1;
            }
        }
        let ids = messages.iter().map(|message| message.key.id());
        load.known = ids.filter(|id| self.inbox_ids.contains_key(id)).collect();
        load
    }

    fn store(&mut self, message: NewInboxMessage, at: DateTime<Utc>) {
        let (id, seq) = (message.key.id(), self.next_seq());
        let row = InboxMessage {
            id,
            seq,
            key: message.key,
            conversation: message.conversation,
            urgency: message.urgency,
            event: message.event,
            state: InboxState::Waiting,
            note: None,
            claims: 0,
            failures: 0,
            failed_since: None,
            not_before: None,
            progress: Value::Null,
            received_at: at,
            ended_at: None,
        };
        self.inbox_ids.insert(id, seq);
        self.inbox.insert(seq, row);
    }
}

/// Converts a limit to the size of a collection.
pub(super) fn bounded(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}
