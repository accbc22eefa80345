//! Rows of the channels in the database of the gateways.

use std::collections::{BTreeMap, HashMap, HashSet};

use deerflow_domain::channels::{
    Account, AccountClaim, ChannelStores, InboxFilter, InboxMessage, Outgoing, OutgoingFilter,
    OutgoingState,
};
use deerflow_stores::{Database, DatabaseConfig, SqlChannelStore, SqlRunStore};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::{RunListQuery, RunQueryStore};

/// Maximum number of rows of a listing, more than any test creates.
const ALL: u32 = 1_000_000;

/// Database of the gateways, read concurrently with them.
#[derive(Debug)]
pub(super) struct Records {
    stores: ChannelStores,
    runs: SqlRunStore,
}

/// Everything that a holder writes of an account.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    pub(super) inbox: Vec<InboxMessage>,
    pub(super) outbox: Vec<Outgoing>,
    pub(super) cursors: BTreeMap<Account, Option<String>>,
    pub(super) claims: Vec<AccountClaim>,
}

impl Records {
    /// Opens the database of a gateway that has created its schema.
    pub(super) async fn open(config: &DatabaseConfig) -> Self {
        let database = Database::open_shared(config).await.expect("database");
        Self {
            stores: SqlChannelStore::new(database.clone()).stores(),
            runs: SqlRunStore::new(database),
        }
    }

    /// Returns the newest claims of all accounts.
    pub(super) async fn claims(&self) -> Vec<AccountClaim> {
        let leases = self.stores.leases.all().await.expect("leases");
        leases.into_iter().map(|lease| lease.claim).collect()
    }

    /// Returns everything that holders have written.
    pub(super) async fn written(&self) -> Written {
        let claims = self.claims().await;
        let mut cursors = BTreeMap::new();
        for claim in &claims {
            let cursor = self.stores.inbox.cursor(&claim.account).await;
            cursors.insert(claim.account.clone(), cursor.expect("cursor"));
        }
        Written {
            inbox: self.inbox().await,
            outbox: self.outbox(None).await,
            cursors,
            claims,
        }
    }

    /// Returns the bodies of the pending messages of some platforms whose sending had begun, with
    /// their platforms.
    pub(super) async fn unrecorded(&self, platforms: &[&str]) -> Vec<(String, String)> {
        let pending = self.outbox(Some(OutgoingState::Pending)).await;
        let begun = pending.into_iter().filter(|row| {
            let provider = row.message.account.provider.as_str();
            row.attempts > 0 && platforms.contains(&provider)
        });
        begun
            .map(|row| {
                let body = row.message.body.to_string();
                (row.message.account.provider, body)
            })
            .collect()
    }

    /// Returns the number of runs beyond one per message of a person: further runs of threads, and
    /// further rows of a text.
    pub(super) async fn duplicate_runs(&self) -> usize {
        let inbox = self.inbox().await;
        let mut threads: HashMap<(Account, String), HashSet<String>> = HashMap::new();
        let mut texts = HashSet::new();
        let mut duplicates = 0;
        for row in inbox {
            let text = row.event.pointer("/body/message/text").cloned();
            let place = (row.key.account.clone(), row.key.chat.clone());
            if !texts.insert((place, text.unwrap_or_default().to_string())) {
                duplicates += 1;
            }
            let run = row.run_id().as_str().to_owned();
            let conversation = (row.key.account, row.conversation);
            threads.entry(conversation).or_default().insert(run);
        }
        for ((account, key), runs) in threads {
            let found = self.stores.conversations.find(&account, &key).await;
            let Some(conversation) = found.expect("conversation") else {
                continue;
            };
            let query = RunListQuery {
                limit: ALL as usize,
                ..RunListQuery::default()
            };
            let stored = self
                .runs
                .list(&conversation.thread_id, &query, &Owner::None)
                .await
                .expect("runs");
            duplicates += stored
                .iter()
                .filter(|run| !runs.contains(run.run_id.as_str()))
                .count();
        }
        duplicates
    }

    async fn inbox(&self) -> Vec<InboxMessage> {
        let filter = InboxFilter {
            limit: ALL.into(),
            ..InboxFilter::default()
        };
        self.stores.inbox.list(&filter).await.expect("inbox")
    }

    async fn outbox(&self, state: Option<OutgoingState>) -> Vec<Outgoing> {
        let filter = OutgoingFilter {
            state,
            limit: ALL.into(),
            ..OutgoingFilter::default()
        };
        self.stores.outbox.list(&filter).await.expect("outbox")
    }
}
