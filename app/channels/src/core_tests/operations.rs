//! Tests of an import, of a stop, and of a restart that another process requests.

use deerflow_domain::channels::Account;
use harness::clock::{Clock, SystemClock};
use serde_json::json;

use super::rig::{Rig, config, within};
use crate::platform::Platform;

#[tokio::test(flavor = "multi_thread")]
async fn imported_chat_continues_its_conversation() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("channels")).unwrap();
    let file = json!({"memory:c1": {"thread_id": "old", "user_id": "ann"}, "memory:c2": 1});
    std::fs::write(home.path().join("channels/store.json"), file.to_string()).unwrap();
    let rig = Rig::with_home(config(json!({}), json!({})), home).await;
    let account = account(&rig).await;
    assert!(!rig.ask("c1", "hello").await.is_empty());
    let conversations = &rig.stores.conversations;
    let imported = conversations.find(&account, "c1").await.unwrap().unwrap();
    assert_eq!(imported.thread_id.as_str(), "old");
    // Only the chat without an entry got a new conversation with its thread.
    assert!(!rig.ask("c3", "hello").await.is_empty());
    let created: Vec<_> = rig.threads.0.lock().clone();
    let chats = created
        .iter()
        .map(|thread| &thread.metadata["channel_source"]["chat_id"]);
    assert_eq!(chats.filter(|chat| **chat == "c3").count(), 1);
    rig.tasks.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_lease_restarts_the_channel() {
    let rig = Rig::start().await;
    assert!(!rig.ask("c1", "hello").await.is_empty());
    let account = account(&rig).await;
    let leases = &rig.stores.leases;
    let before = leases.lease(&account).await.unwrap().unwrap().claim;
    let revoked = leases.revoke(&account, SystemClock.now()).await;
    assert_eq!(revoked, Ok(true));
    let held_again = async {
        loop {
            let lease = leases.lease(&account).await.unwrap().unwrap();
            if lease.claim.epoch >= before.epoch + 2 {
                return lease.claim;
            }
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(within(held_again).await.node, before.node);
    assert!(!rig.ask("c1", "again").await.is_empty());
    rig.tasks.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_channel_closes_its_connection() {
    let rig = Rig::start().await;
    assert!(!rig.ask("c1", "hello").await.is_empty());
    rig.tasks.shut_down().await;
    assert_eq!(rig.platform.closed(), 1);
}

async fn account(rig: &Rig) -> Account {
    let identity = rig.platform.identify().await.unwrap();
    Account::new("memory", identity.account)
}
