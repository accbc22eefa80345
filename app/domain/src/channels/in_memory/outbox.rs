//! Outbox in memory.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::inbox::bounded;
use super::{InMemoryChannels, Tables};
use crate::channels::{
    Account, AccountClaim, ChannelStoreError, ClosedLane, NewOutgoing, OutboxStore, Outgoing,
    OutgoingFilter, OutgoingState,
};

#[async_trait]
impl OutboxStore for InMemoryChannels {
    async fn enqueue(
        &self,
        claim: &AccountClaim,
        messages: Vec<NewOutgoing>,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let mut tables = self.0.lock();
        tables.fence(claim, messages.iter().map(|message| &message.account))?;
        tables.add_outgoing(messages, at);
        Ok(())
    }

    async fn pending_chats(&self, account: &Account) -> Result<Vec<String>, ChannelStoreError> {
        let tables = self.0.lock();
        let mut chats = Vec::new();
        for row in tables.pending_in(account) {
            if !chats.contains(&row.message.chat) {
                chats.push(row.message.chat.clone());
            }
        }
        Ok(chats)
    }

    async fn next(
        &self,
        account: &Account,
        chat: &str,
    ) -> Result<Option<Outgoing>, ChannelStoreError> {
        let tables = self.0.lock();
        let first = tables
            .pending_in(account)
            .find(|row| row.message.chat == chat);
        Ok(first.cloned())
    }

    async fn begin(&self, claim: &AccountClaim, id: Uuid) -> Result<(), ChannelStoreError> {
        self.change_pending(claim, id, |row| {
            row.attempts = row.attempts.saturating_add(1);
        })
    }

    async fn save_progress(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        progress: Value,
    ) -> Result<(), ChannelStoreError> {
        self.change_pending(claim, id, |row| row.progress = progress)
    }

    async fn retry(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        error: &str,
        not_before: DateTime<Utc>,
        counts: bool,
    ) -> Result<(), ChannelStoreError> {
        self.change_pending(claim, id, |row| {
            row.error = Some(error.to_owned());
            row.not_before = not_before;
            if !counts {
                row.attempts = row.attempts.saturating_sub(1);
            }
        })
    }

    async fn sent(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        platform_ids: Vec<String>,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let mut tables = self.0.lock();
        tables.fence(claim, [])?;
        let Some(row) = tables.pending_row(&claim.account, id) else {
            return Ok(());
        };
        row.state = OutgoingState::Sent;
        row.error = None;
        row.ended_at = Some(at);
        row.platform_ids.clone_from(&platform_ids);
        let (chat, conversation) = (row.message.chat.clone(), row.message.conversation.clone());
        for platform_id in platform_ids {
            let key = (claim.account.clone(), chat.clone(), platform_id);
            tables
                .links
                .entry(key)
                .or_insert_with(|| (conversation.clone(), at));
        }
        Ok(())
    }

    async fn bury(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        error: &str,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        self.change_pending(claim, id, |row| {
            row.state = OutgoingState::Dead;
            row.error = Some(error.to_owned());
            row.ended_at = Some(at);
        })
    }

    async fn conversation_of(
        &self,
        account: &Account,
        chat: &str,
        platform_id: &str,
    ) -> Result<Option<String>, ChannelStoreError> {
        let key = (account.clone(), chat.to_owned(), platform_id.to_owned());
        let tables = self.0.lock();
        let found = tables.links.get(&key);
        Ok(found.map(|(conversation, _)| conversation.clone()))
    }

    async fn link(
        &self,
        claim: &AccountClaim,
        chat: &str,
        platform_id: &str,
        conversation: &str,
        at: DateTime<Utc>,
    ) -> Result<(), ChannelStoreError> {
        let mut tables = self.0.lock();
        tables.fence(claim, [])?;
        let key = (
            claim.account.clone(),
            chat.to_owned(),
            platform_id.to_owned(),
        );
        tables
            .links
            .entry(key)
            .or_insert_with(|| (conversation.to_owned(), at));
        Ok(())
    }

    async fn close_lane(
        &self,
        claim: &AccountClaim,
        lane: &ClosedLane,
    ) -> Result<(), ChannelStoreError> {
        let mut tables = self.0.lock();
        tables.fence(claim, [])?;
        let key = (claim.account.clone(), lane.chat.clone());
        let until = tables.lanes.entry(key).or_insert(lane.until);
        *until = lane.until.max(*until);
        Ok(())
    }

    async fn closed_lanes(
        &self,
        account: &Account,
        at: DateTime<Utc>,
    ) -> Result<Vec<ClosedLane>, ChannelStoreError> {
        let tables = self.0.lock();
        let lanes = tables.lanes.iter();
        let closed = lanes.filter(|((of, _), until)| of == account && **until > at);
        Ok(closed
            .map(|((_, chat), until)| ClosedLane {
                chat: chat.clone(),
                until: *until,
            })
            .collect())
    }

    async fn list(&self, filter: &OutgoingFilter) -> Result<Vec<Outgoing>, ChannelStoreError> {
        let tables = self.0.lock();
        let rows = tables.outbox.values().rev();
        let rows = rows.filter(|row| filter.matches(&row.message.account.provider, &row.state));
        Ok(rows.take(bounded(filter.limit)).cloned().collect())
    }

    async fn resend(&self, id: Uuid, at: DateTime<Utc>) -> Result<bool, ChannelStoreError> {
        let mut tables = self.0.lock();
        let seq = tables.outbox_ids.get(&id).copied();
        let dead = seq
            .and_then(|seq| tables.outbox.get_mut(&seq))
            .filter(|row| row.state == OutgoingState::Dead);
        let Some(row) = dead else {
            return Ok(false);
        };
        row.state = OutgoingState::Pending;
        row.attempts = 0;
        row.not_before = at;
        row.created_at = at;
        row.ended_at = None;
        Ok(true)
    }

    async fn depth(&self, account: &Account) -> Result<u64, ChannelStoreError> {
        Ok(self.0.lock().pending_in(account).count() as u64)
    }

    async fn forget(
        &self,
        before: DateTime<Utc>,
        links_before: DateTime<Utc>,
        limit: u64,
    ) -> Result<u64, ChannelStoreError> {
        let mut tables = self.0.lock();
        let ended = tables
            .outbox
            .values()
            .filter(|row| row.ended_at.is_some_and(|at| at < before));
        let rows: Vec<(i64, Uuid)> = ended
            .map(|row| (row.seq, row.message.id))
            .take(bounded(limit))
            .collect();
        for (seq, id) in &rows {
            tables.outbox.remove(seq);
            tables.outbox_ids.remove(id);
        }
        let old = tables
            .links
            .iter()
            .filter(|(_, (_, at))| *at < links_before);
        let links: Vec<_> = old
            .map(|(key, _)| key.clone())
            .take(bounded(limit) - rows.len())
            .collect();
        for key in &links {
            tables.links.remove(key);
        }
        let over = tables.lanes.iter().filter(|(_, until)| **until < before);
        let lanes: Vec<_> = over
            .map(|(key, _)| key.clone())
            .take(bounded(limit) - rows.len() - links.len())
            .collect();
        for key in &lanes {
            tables.lanes.remove(key);
        }
        Ok((rows.len() + links.len() + lanes.len()) as u64)
    }
}

impl InMemoryChannels {
    /// Changes a pending row of the claimed account.
    fn change_pending(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        change: impl FnOnce(&mut Outgoing),
    ) -> Result<(), ChannelStoreError> {
        let mut tables = self.0.lock();
        tables.fence(claim, [])?;
        if let Some(row) = tables.pending_row(&claim.account, id) {
            change(row);
        }
        Ok(())
    }
}

impl Tables {
    fn pending_in<'a>(&'a self, account: &'a Account) -> impl Iterator<Item = &'a Outgoing> {
        self.outbox.values().filter(move |row| {
            row.state == OutgoingState::Pending && row.message.account == *account
        })
    }

    fn pending_row(&mut self, account: &Account, id: Uuid) -> Option<&mut Outgoing> {
        let seq = self.outbox_ids.get(&id)?;
        self.outbox
            .get_mut(seq)
            .filter(|row| row.state == OutgoingState::Pending && row.message.account == *account)
    }
}
