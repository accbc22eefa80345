//! An outbox whose record of sent messages fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::channels::{
    Account, AccountClaim, ChannelStoreError, ClosedLane, NewOutgoing, OutboxStore, Outgoing,
    OutgoingFilter,
};
use harness::runtime::runs::store::StoreError;
use serde_json::Value;
use uuid::Uuid;

type Stored<T> = Result<T, ChannelStoreError>;

/// Outbox over another one; the first calls of `sent` fail.
#[derive(Debug)]
pub(super) struct FlakyOutbox {
    inner: Arc<dyn OutboxStore>,
    failures: AtomicUsize,
}

impl FlakyOutbox {
    pub(super) fn over(inner: Arc<dyn OutboxStore>, failures: usize) -> Arc<Self> {
        let failures = AtomicUsize::new(failures);
        Arc::new(Self { inner, failures })
    }

    pub(super) fn failures_left(&self) -> usize {
        self.failures.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl OutboxStore for FlakyOutbox {
    async fn enqueue(
        &self,
        claim: &AccountClaim,
        messages: Vec<NewOutgoing>,
        at: DateTime<Utc>,
    ) -> Stored<()> {
        self.inner.enqueue(claim, messages, at).await
    }
    async fn pending_chats(&self, account: &Account) -> Stored<Vec<String>> {
        self.inner.pending_chats(account).await
    }
    async fn next(&self, account: &Account, chat: &str) -> Stored<Option<Outgoing>> {
        self.inner.next(account, chat).await
    }
    async fn begin(&self, claim: &AccountClaim, id: Uuid) -> Stored<()> {
        self.inner.begin(claim, id).await
    }
    async fn save_progress(&self, claim: &AccountClaim, id: Uuid, progress: Value) -> Stored<()> {
        self.inner.save_progress(claim, id, progress).await
    }
    async fn retry(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        error: &str,
        not_before: DateTime<Utc>,
        counts: bool,
    ) -> Stored<()> {
        let inner = &self.inner;
        inner.retry(claim, id, error, not_before, counts).await
    }
    async fn sent(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        platform_ids: Vec<String>,
        at: DateTime<Utc>,
    ) -> Stored<()> {
        let fewer = |left: usize| left.checked_sub(1);
        let order = Ordering::SeqCst;
        match self.failures.fetch_update(order, order, fewer) {
            Ok(_) => Err(StoreError::Unavailable("injected".to_owned()).into()),
            Err(_) => self.inner.sent(claim, id, platform_ids, at).await,
        }
    }
    async fn bury(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        error: &str,
        at: DateTime<Utc>,
    ) -> Stored<()> {
        self.inner.bury(claim, id, error, at).await
    }
    async fn conversation_of(
        &self,
        account: &Account,
        chat: &str,
        platform_id: &str,
    ) -> Stored<Option<String>> {
        self.inner.conversation_of(account, chat, platform_id).await
    }
    async fn link(
        &self,
        claim: &AccountClaim,
        chat: &str,
        platform_id: &str,
        conversation: &str,
        at: DateTime<Utc>,
    ) -> Stored<()> {
        let inner = &self.inner;
        inner.link(claim, chat, platform_id, conversation, at).await
    }
    async fn close_lane(&self, claim: &AccountClaim, lane: &ClosedLane) -> Stored<()> {
        self.inner.close_lane(claim, lane).await
    }
    async fn closed_lanes(&self, account: &Account, at: DateTime<Utc>) -> Stored<Vec<ClosedLane>> {
        self.inner.closed_lanes(account, at).await
    }
    async fn list(&self, filter: &OutgoingFilter) -> Stored<Vec<Outgoing>> {
        self.inner.list(filter).await
    }
    async fn resend(&self, id: Uuid, at: DateTime<Utc>) -> Stored<bool> {
        self.inner.resend(id, at).await
    }
    async fn depth(&self, account: &Account) -> Stored<u64> {
        self.inner.depth(account).await
    }
    async fn forget(
        &self,
        before: DateTime<Utc>,
        links_before: DateTime<Utc>,
        limit: u64,
    ) -> Stored<u64> {
        self.inner.forget(before, links_before, limit).await
    }
}
