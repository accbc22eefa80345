//! State that the tasks of one served account share.

use std::sync::Arc;

use deerflow_domain::channels::{
    AccountClaim, ChannelStoreError, ChannelStores, InboxEnd, NewOutgoing, Urgency,
};
use deerflow_domain::threads::ThreadStore;
use harness::client::Client;
use harness::clock::Clock;
use harness::ids::ThreadId;
use harness::runtime::actor_context::ActorContext;
use harness::runtime::tasks::Tasks;
use parking_lot::Mutex;
use tokio::sync::{RwLock, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::active::ActiveTurns;
use super::exchanges::Exchanges;
use super::handling::Handling;
use super::lanes::Lanes;
use super::pacing::Pacing;
use crate::config::Rules;
use crate::import::Importer;
use crate::measures;
use crate::platform::Platform;

/// Parts that all channels of a process share.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) stores: ChannelStores,
    pub(crate) client: Client,
    pub(crate) threads: Arc<dyn ThreadStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tasks: Tasks,
    /// Id of this node.
    pub(crate) node: String,
    pub(crate) importer: Importer,
    /// Limits the messages that are handled at the same time.
    pub(crate) handling: Handling,
}

/// One served account.
#[derive(Debug)]
pub(crate) struct Bot {
    pub(crate) hub: Arc<Hub>,
    pub(crate) provider: &'static str,
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) claim: AccountClaim,
    pub(crate) rules: Arc<Rules>,
    pub(crate) pacing: Arc<Pacing>,
    /// Permits to handle messages, shared with the other accounts of the process.
    pub(crate) handling: Arc<Semaphore>,
    /// Shared while rows are read and begun; held exclusively while a chat is renamed, or messages are
    /// stopped that were not begun.
    pub(crate) beginning: RwLock<()>,
    /// Tasks of the outbox that may have a call in progress.
    pub(crate) sending: TaskTracker,
    /// Tasks by conversation and urgency.
    pub(crate) conversations: Lanes<(String, Urgency)>,
    /// Tasks of the outbox by chat.
    pub(crate) chats: Lanes<String>,
    pub(crate) active: ActiveTurns,
    pub(crate) exchanges: Exchanges,
    /// Time until which the lease is certainly valid, by the monotonic clock.
    pub(crate) valid_until: Mutex<Instant>,
    /// Cancelled when this node stops to serve the account.
    pub(crate) stop: CancellationToken,
}

impl Bot {
    /// Returns the actor of a user's runs.
    pub(crate) fn actor(&self, user_id: &str) -> ActorContext {
        ActorContext {
            auth_source: Some(format!("channel:{}", self.provider)),
            ..ActorContext::user(user_id)
        }
    }

    /// Reports whether this node certainly serves the account. A process that was suspended checks
    /// this before it calls the platform, because another node may have taken over.
    pub(crate) fn is_serving(&self) -> bool {
        !self.stop.is_cancelled() && Instant::now() < *self.valid_until.lock()
    }

    /// Ends inbox rows and stores their replies, in one transaction.
    pub(crate) async fn end(
        &self,
        ids: &[Uuid],
        end: InboxEnd,
        replies: Vec<NewOutgoing>,
    ) -> Result<(), ChannelStoreError> {
        let (now, state) = (self.hub.clock.now(), end.state);
        let inbox = &self.hub.stores.inbox;
        inbox.end(&self.claim, ids, end, replies, now).await?;
        measures::ended(self.provider, state, ids.len());
        Ok(())
    }

    /// Stops the service if a store reports that another node serves the account.
    pub(crate) fn check_fence(&self, error: &ChannelStoreError) {
        if *error == ChannelStoreError::Fenced {
            self.stop.cancel();
        }
    }
}

/// Returns the thread id that follows from an inbox row.
pub(crate) fn thread_of(row: Uuid) -> ThreadId {
    ThreadId::from(Uuid::new_v5(&row, b"thread"))
}
