//! Tests of the owners and of the files of an import.

use chrono::TimeDelta;
use deerflow_domain::channels::InMemoryChannels;
use harness::ids::ThreadId;
use harness::runtime::runs::ThreadStatus;
use serde_json::json;

use super::*;
use crate::core_tests::CreatedThreads;

fn account() -> Account {
    Account::new("telegram", "7")
}

fn entry(chat: &str, topic: Option<&str>, person: &str) -> Entry {
    Entry {
        chat: chat.to_owned(),
        topic: topic.map(str::to_owned),
        thread_id: ThreadId::parse("t1").unwrap(),
        person: Some(person.to_owned()),
        created_at: None,
        updated_at: None,
    }
}

fn thread(metadata: Value) -> ThreadRecord {
    let at = DateTime::UNIX_EPOCH;
    ThreadRecord {
        thread_id: ThreadId::parse("t1").unwrap(),
        user_id: Some("ann".to_owned()),
        assistant: None,
        assistant_id: None,
        title: None,
        status: ThreadStatus::Idle,
        metadata: metadata.as_object().unwrap().clone(),
        created_at: at,
        updated_at: at,
        state_updated_at: at,
        ttl: None,
    }
}

#[test]
fn owner_is_that_of_a_thread_of_the_same_chat_only() {
    let source =
        |provider, chat| json!({"channel_source": {"provider": provider, "chat_id": chat}});
    let owner = |metadata: Option<Value>| {
        let thread = metadata.map(thread);
        let now = DateTime::UNIX_EPOCH;
        conversation(&account(), entry("42", None, "42"), thread.as_ref(), now).user_id
    };
    assert_eq!(owner(Some(source("telegram", "42"))), "ann");
    let own = user_of_place("telegram", "", ChatKind::Direct, "42");
    for foreign in [
        None,
        Some(json!({})),
        Some(source("telegram", "43")),
        Some(source("slack", "42")),
        Some(json!({"channel_source": "telegram"})),
    ] {
        assert_eq!(owner(foreign), own);
    }
}

#[test]
fn conversation_of_a_user_is_found_by_the_connected_user_too() {
    let metadata = json!({"channel_source": {"provider": "telegram", "chat_id": "42"}});
    let imported = |thread: Option<&ThreadRecord>| {
        let entry = entry("42", None, "42");
        conversation(&account(), entry, thread, DateTime::UNIX_EPOCH)
    };
    let of_ann = imported(Some(&thread(metadata)));
    let connected = of_connected_owner(&of_ann).unwrap();
    assert_eq!(connected.key, thread_key("42", Some("ann")));
    assert_eq!(connected.thread_id, of_ann.thread_id);
    assert_eq!(of_connected_owner(&imported(None)), None);
}

#[test]
fn group_entry_has_the_key_and_user_of_its_group() {
    let now = DateTime::UNIX_EPOCH + TimeDelta::days(1);
    let imported = conversation(&account(), entry("-100", Some("9"), "42"), None, now);
    assert_eq!(imported.key, "-100:9");
    assert_eq!(
        imported.user_id,
        user_of_place("telegram", "", ChatKind::Group, "-100")
    );
    assert_eq!((imported.created_at, imported.updated_at), (now, now));
}

async fn found(stores: &deerflow_domain::channels::ChannelStores, account: &Account) -> bool {
    let found = stores.conversations.find(account, "42").await.unwrap();
    found.is_some()
}

#[tokio::test]
async fn each_account_is_imported_once() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("channels");
    std::fs::create_dir(&folder).unwrap();
    let importer = Importer::new(home.path().to_owned());
    let stores = InMemoryChannels::stores();
    let threads = CreatedThreads::default();
    let now = DateTime::UNIX_EPOCH;
    let run = async |account: &Account, stores: &deerflow_domain::channels::ChannelStores| {
        let imported = importer.run(account, &*stores.conversations, &threads, now);
        imported.await
    };
    // Without a file nothing is remembered.
    assert_eq!(run(&account(), &stores).await.unwrap(), None);
    std::fs::write(folder.join("store.json"), "{broken").unwrap();
    assert!(run(&account(), &stores).await.is_err());
    let file = json!({"telegram:42": {"thread_id": "t1"}, "telegram:43": {"thread_id": "a/b"}});
    std::fs::write(folder.join("store.json"), file.to_string()).unwrap();
    let expected = Imported {
        conversations: 1,
        skipped: 1,
    };
    assert_eq!(run(&account(), &stores).await.unwrap(), Some(expected));
    assert!(found(&stores, &account()).await);
    let fresh = InMemoryChannels::stores();
    assert_eq!(run(&account(), &fresh).await.unwrap(), None);
    let other = Account::new("telegram", "8");
    assert_eq!(run(&other, &stores).await.unwrap(), Some(expected));
    assert_eq!(run(&account(), &fresh).await.unwrap(), None);
    // A malformed marker counts as absent, and known conversations stay.
    std::fs::write(folder.join("imported.json"), "[1]").unwrap();
    let again = Imported {
        conversations: 0,
        ..expected
    };
    assert_eq!(run(&account(), &stores).await.unwrap(), Some(again));
}
