//! The stores as a node sees them: calls take time, fail, and lose their answers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_domain::channels::{
    Acceptance, Account, AccountClaim, AccountLeases, ChannelStoreError, ChannelStores, ClosedLane,
    Conversation, ConversationStore, InboxBatch, InboxEnd, InboxFilter, InboxLimits, InboxMessage,
    InboxStore, LeaseRecord, NewOutgoing, OutboxStore, Outgoing, OutgoingFilter, Urgency,
};
use harness::runtime::runs::store::StoreError;
use serde_json::Value;
use uuid::Uuid;

use super::world::World;

type Stored<T> = Result<T, ChannelStoreError>;

/// Returns the stores of a node.
pub(super) fn faulty_stores(world: &Arc<World>) -> ChannelStores {
    let faulty = Arc::new(FaultyStores(world.clone()));
    ChannelStores {
        leases: faulty.clone(),
        inbox: faulty.clone(),
        outbox: faulty.clone(),
        conversations: faulty,
        ..world.stores.clone()
    }
}

#[derive(Debug)]
struct FaultyStores(Arc<World>);

fn failure(when: &str) -> ChannelStoreError {
    StoreError::Unavailable(format!("injected {when} the effect")).into()
}

impl FaultyStores {
    fn stores(&self) -> &ChannelStores {
        &self.0.stores
    }

    /// Performs a call that may fail before and after its effect.
    async fn call<T>(&self, call: impl Future<Output = Stored<T>>) -> Stored<T> {
        self.0.pass_time().await;
        if self.0.fails() {
            return Err(failure("before"));
        }
        let result = call.await?;
        self.0.pass_time().await;
        if self.0.fails() {
            return Err(failure("after"));
        }
        Ok(result)
    }

    /// Performs a write of a claim, which must be the newest at the moment of the effect.
    async fn write<T>(
        &self,
        claim: &AccountClaim,
        call: impl Future<Output = Stored<T>>,
    ) -> Stored<T> {
        let write = async {
            let written = call.await?;
            let newest = self.0.observed.lock().newest.clone();
            if newest.as_ref() != Some(claim) {
                let text = format!("a write of {claim:?} is stored, but {newest:?} is the newest");
                self.0.violation(text);
            }
            Ok(written)
        };
        self.call(write).await
    }
}

#[async_trait]
impl AccountLeases for FaultyStores {
    async fn acquire(
        &self,
        account: &Account,
        node: &str,
        duration: Duration,
        at: DateTime<Utc>,
    ) -> Stored<Option<AccountClaim>> {
        let acquire = async {
            let leases = &self.stores().leases;
            let claim = leases.acquire(account, node, duration, at).await?;
            if let Some(claim) = &claim {
                self.0.log(format_args!("{node} serves the account"));
                let mut observed = self.0.observed.lock();
                observed.newest = Some(claim.clone());
                observed.counts.takeovers += 1;
            }
            Ok(claim)
        };
        self.call(acquire).await
    }

    async fn renew(
        &self,
        claim: &AccountClaim,
        duration: Duration,
        at: DateTime<Utc>,
    ) -> Stored<()> {
        let leases = &self.stores().leases;
        self.write(claim, leases.renew(claim, duration, at)).await
    }

    async fn release(&self, claim: &AccountClaim, at: DateTime<Utc>) -> Stored<()> {
        self.call(self.stores().leases.release(claim, at)).await
    }

    async fn lease(&self, account: &Account) -> Stored<Option<LeaseRecord>> {
        self.call(self.stores().leases.lease(account)).await
    }

    async fn all(&self) -> Stored<Vec<LeaseRecord>> {
        self.call(self.stores().leases.all()).await
    }

    async fn revoke(&self, account: &Account, free_at: DateTime<Utc>) -> Stored<bool> {
        self.stores().leases.revoke(account, free_at).await
    }
}

#[async_trait]
impl InboxStore for FaultyStores {
    async fn accept(
        &self,
        claim: &AccountClaim,
        batch: InboxBatch,
        limits: InboxLimits,
        at: DateTime<Utc>,
    ) -> Stored<Vec<Acceptance>> {
        let inbox = &self.stores().inbox;
        self.write(claim, inbox.accept(claim, batch, limits, at))
            .await
    }

    async fn cursor(&self, account: &Account) -> Stored<Option<String>> {
        self.call(self.stores().inbox.cursor(account)).await
    }

    async fn waiting_conversations(&self, account: &Account) -> Stored<Vec<(String, Urgency)>> {
        self.call(self.stores().inbox.waiting_conversations(account))
            .await
    }

    async fn waiting(
        &self,
        account: &Account,
        conversation: &str,
        urgency: Urgency,
        limit: u64,
    ) -> Stored<Vec<InboxMessage>> {
        let inbox = &self.stores().inbox;
        self.call(inbox.waiting(account, conversation, urgency, limit))
            .await
    }

    async fn begin(&self, claim: &AccountClaim, ids: &[Uuid]) -> Stored<()> {
        self.write(claim, self.stores().inbox.begin(claim, ids))
            .await
    }

    async fn save_progress(&self, claim: &AccountClaim, id: Uuid, progress: Value) -> Stored<()> {
        let inbox = &self.stores().inbox;
        self.write(claim, inbox.save_progress(claim, id, progress))
            .await
    }

    async fn fail(
        &self,
        claim: &AccountClaim,
        ids: &[Uuid],
        note: &str,
        not_before: DateTime<Utc>,
        at: DateTime<Utc>,
    ) -> Stored<()> {
        let inbox = &self.stores().inbox;
        self.write(claim, inbox.fail(claim, ids, note, not_before, at))
            .await
    }

    async fn end(
        &self,
        claim: &AccountClaim,
        ids: &[Uuid],
        end: InboxEnd,
        replies: Vec<NewOutgoing>,
        at: DateTime<Utc>,
    ) -> Stored<()> {
        let inbox = &self.stores().inbox;
        self.write(claim, inbox.end(claim, ids, end, replies, at))
            .await
    }

    async fn list(&self, filter: &InboxFilter) -> Stored<Vec<InboxMessage>> {
        self.call(self.stores().inbox.list(filter)).await
    }

    async fn backlog(&self, account: &Account) -> Stored<(u64, Option<DateTime<Utc>>)> {
        self.call(self.stores().inbox.backlog(account)).await
    }

    async fn forget(&self, before: DateTime<Utc>, limit: u64) -> Stored<u64> {
        self.call(self.stores().inbox.forget(before, limit)).await
    }
}

#[async_trait]
impl OutboxStore for FaultyStores {
    async fn enqueue(
        &self,
        claim: &AccountClaim,
        messages: Vec<NewOutgoing>,
        at: DateTime<Utc>,
    ) -> Stored<()> {
        let outbox = &self.stores().outbox;
        self.write(claim, outbox.enqueue(claim, messages, at)).await
    }

    async fn pending_chats(&self, account: &Account) -> Stored<Vec<String>> {
        self.call(self.stores().outbox.pending_chats(account)).await
    }

    async fn next(&self, account: &Account, chat: &str) -> Stored<Option<Outgoing>> {
        self.call(self.stores().outbox.next(account, chat)).await
    }

    async fn begin(&self, claim: &AccountClaim, id: Uuid) -> Stored<()> {
        self.write(claim, self.stores().outbox.begin(claim, id))
            .await
    }

    async fn save_progress(&self, claim: &AccountClaim, id: Uuid, progress: Value) -> Stored<()> {
        let outbox = &self.stores().outbox;
        self.write(claim, outbox.save_progress(claim, id, progress))
            .await
    }

    async fn retry(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        error: &str,
        not_before: DateTime<Utc>,
        counts: bool,
    ) -> Stored<()> {
        let outbox = &self.stores().outbox;
        self.write(claim, outbox.retry(claim, id, error, not_before, counts))
            .await
    }

    async fn sent(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        platform_ids: Vec<String>,
        at: DateTime<Utc>,
    ) -> Stored<()> {
        let outbox = &self.stores().outbox;
        let stored = self
            .write(claim, outbox.sent(claim, id, platform_ids, at))
            .await;
        if stored.is_err() {
            self.0.observed.lock().unrecorded.insert(id);
        }
        stored
    }

    async fn bury(
        &self,
        claim: &AccountClaim,
        id: Uuid,
        error: &str,
        at: DateTime<Utc>,
    ) -> Stored<()> {
        self.write(claim, self.stores().outbox.bury(claim, id, error, at))
            .await
    }

    async fn conversation_of(
        &self,
        account: &Account,
        chat: &str,
        platform_id: &str,
    ) -> Stored<Option<String>> {
        let outbox = &self.stores().outbox;
        self.call(outbox.conversation_of(account, chat, platform_id))
            .await
    }

    async fn link(
        &self,
        claim: &AccountClaim,
        chat: &str,
        platform_id: &str,
        conversation: &str,
        at: DateTime<Utc>,
    ) -> Stored<()> {
        let outbox = &self.stores().outbox;
        self.write(
            claim,
            outbox.link(claim, chat, platform_id, conversation, at),
        )
        .await
    }

    async fn list(&self, filter: &OutgoingFilter) -> Stored<Vec<Outgoing>> {
        self.call(self.stores().outbox.list(filter)).await
    }

    async fn resend(&self, id: Uuid, at: DateTime<Utc>) -> Stored<bool> {
        self.call(self.stores().outbox.resend(id, at)).await
    }

    async fn depth(&self, account: &Account) -> Stored<u64> {
        self.call(self.stores().outbox.depth(account)).await
    }

    async fn close_lane(&self, claim: &AccountClaim, lane: &ClosedLane) -> Stored<()> {
        self.write(claim, self.stores().outbox.close_lane(claim, lane))
            .await
    }

    async fn closed_lanes(&self, account: &Account, at: DateTime<Utc>) -> Stored<Vec<ClosedLane>> {
        self.call(self.stores().outbox.closed_lanes(account, at))
            .await
    }

    async fn forget(
        &self,
        before: DateTime<Utc>,
        links_before: DateTime<Utc>,
        limit: u64,
    ) -> Stored<u64> {
        self.call(self.stores().outbox.forget(before, links_before, limit))
            .await
    }
}

#[async_trait]
impl ConversationStore for FaultyStores {
    async fn find(&self, account: &Account, key: &str) -> Stored<Option<Conversation>> {
        self.call(self.stores().conversations.find(account, key))
            .await
    }

    async fn create(
        &self,
        claim: &AccountClaim,
        conversation: Conversation,
    ) -> Stored<Conversation> {
        let conversations = &self.stores().conversations;
        self.write(claim, conversations.create(claim, conversation))
            .await
    }

    async fn update(
        &self,
        claim: &AccountClaim,
        conversation: &Conversation,
        at: DateTime<Utc>,
    ) -> Stored<()> {
        let conversations = &self.stores().conversations;
        self.write(claim, conversations.update(claim, conversation, at))
            .await
    }

    async fn rename_chat(
        &self,
        claim: &AccountClaim,
        from: &str,
        to: &str,
        at: DateTime<Utc>,
    ) -> Stored<()> {
        let conversations = &self.stores().conversations;
        self.write(claim, conversations.rename_chat(claim, from, to, at))
            .await
    }

    async fn import(&self, conversations: Vec<Conversation>) -> Stored<u64> {
        self.call(self.stores().conversations.import(conversations))
            .await
    }
}
