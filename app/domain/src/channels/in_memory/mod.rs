//! Channel stores in memory, for one process and for tests.

mod connections;
mod conversations;
mod credentials;
mod inbox;
mod leases;
mod outbox;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use uuid::Uuid;

use super::{
    Account, AccountClaim, ChannelStoreError, ChannelStores, Connection, Conversation,
    InboxMessage, LeaseRecord, NewCode, NewOutgoing, Outgoing, OutgoingState,
};

/// All channel stores of one process, in memory. It does not know accounts, so no connection is
/// suspended.
#[derive(Debug, Default)]
pub struct InMemoryChannels(Mutex<Tables>);

impl InMemoryChannels {
    /// Creates empty stores.
    pub fn stores() -> ChannelStores {
        let stores = Arc::new(Self::default());
        ChannelStores {
            leases: stores.clone(),
            inbox: stores.clone(),
            outbox: stores.clone(),
            conversations: stores.clone(),
            connections: stores.clone(),
            credentials: stores,
        }
    }
}

/// Account, chat and id of a message on the platform.
type LinkKey = (Account, String, String);

#[derive(Debug, Default)]
struct Tables {
    leases: BTreeMap<Account, LeaseRecord>,
    cursors: HashMap<Account, String>,
    /// By position.
    inbox: BTreeMap<i64, InboxMessage>,
    inbox_ids: HashMap<Uuid, i64>,
    /// By position.
    outbox: BTreeMap<i64, Outgoing>,
    outbox_ids: HashMap<Uuid, i64>,
    /// Conversation, and time of the record.
    links: BTreeMap<LinkKey, (String, DateTime<Utc>)>,
    /// End of the closure, by chat.
    lanes: BTreeMap<(Account, Option<String>), DateTime<Utc>>,
    conversations: BTreeMap<(Account, String), Conversation>,
    connections: BTreeMap<Uuid, Connection>,
    codes: BTreeMap<String, NewCode>,
    credentials: BTreeMap<String, Sealed>,
    last_seq: i64,
}

/// Entry of a platform. It stays after a deletion, so that the version never decreases.
#[derive(Debug)]
struct Sealed {
    text: Option<String>,
    version: i64,
    updated_at: DateTime<Utc>,
}

impl Tables {
    /// Checks that a claim is the newest of its account, and that all written accounts are it.
    fn fence<'a>(
        &self,
        claim: &AccountClaim,
        written: impl IntoIterator<Item = &'a Account>,
    ) -> Result<(), ChannelStoreError> {
        let is_newest = self
            .leases
            .get(&claim.account)
            .is_some_and(|lease| lease.claim.epoch == claim.epoch);
        if is_newest && written.into_iter().all(|account| *account == claim.account) {
            Ok(())
        } else {
            Err(ChannelStoreError::Fenced)
        }
    }

    fn next_seq(&mut self) -> i64 {
        self.last_seq += 1;
        self.last_seq
    }

    fn add_outgoing(&mut self, messages: Vec<NewOutgoing>, at: DateTime<Utc>) {
        for message in messages {
            if self.outbox_ids.contains_key(&message.id) {
                continue;
            }
            let seq = self.next_seq();
            self.outbox_ids.insert(message.id, seq);
            let row = Outgoing {
                message,
                seq,
                state: OutgoingState::Pending,
                attempts: 0,
                not_before: at,
                progress: serde_json::Value::Null,
                error: None,
                platform_ids: Vec::new(),
                created_at: at,
                ended_at: None,
            };
            self.outbox.insert(seq, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::InMemoryChannels;
    use crate::testkit::channels::ChannelSuite;

    async fn memory() -> ChannelSuite {
        ChannelSuite {
            stores: InMemoryChannels::stores(),
            accounts: None,
            keep: Arc::new(()),
        }
    }

    crate::channel_store_suite!([#[tokio::test]] memory);
}
