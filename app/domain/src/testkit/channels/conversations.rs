//! Requirements of conversations.

use deerflow_core::ids::RunId;
use deerflow_runtime::testkit::{USER, at, object, thread};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{ChannelSuite, accept, bot, claim, message, names, other_bot, outgoing, waiting};
use crate::channels::{
    Acceptance, ChannelStores, Conversation, NewOutgoing, OpenQuestion, OutgoingFilter,
};

pub(super) fn conversation(key: &str) -> Conversation {
    Conversation {
        account: bot(),
        key: key.to_owned(),
        chat: "c1".to_owned(),
        topic: None,
        thread_id: thread("t1"),
        user_id: USER.to_owned(),
        options: Map::new(),
        question: None,
        created_at: at(1),
        updated_at: at(1),
    }
}

async fn find(stores: &ChannelStores, key: &str) -> Option<Conversation> {
    stores.conversations.find(&bot(), key).await.expect("read")
}

/// A second creation returns the stored one. An update keeps chat, topic and time of creation.
pub async fn conversation_is_created_once_and_updated(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (stores, conversations) = (&suite.stores, &suite.stores.conversations);
    let first = claim(stores, &bot()).await;
    let full = Conversation {
        topic: Some("42".to_owned()),
        options: object(json!({"model_name": "ü \u{0} 😀"})),
        question: Some(OpenQuestion {
            run_id: RunId::parse("r1").expect("a plain id"),
            interrupt: Some("i1".to_owned()),
            asker: "u1".to_owned(),
            options: vec!["yes".to_owned(), "no".to_owned()],
            token: "tok".to_owned(),
        }),
        ..conversation("c1:42")
    };
    assert_eq!(find(stores, "c1:42").await, None);
    let created = conversations.create(&first, full.clone()).await;
    assert_eq!(created, Ok(full.clone()));
    let other = Conversation {
        thread_id: thread("t2"),
        ..conversation("c1:42")
    };
    let again = conversations.create(&first, other).await;
    assert_eq!(again, Ok(full.clone()));
    let changed = Conversation {
        chat: "ignored".to_owned(),
        topic: None,
        thread_id: thread("t9"),
        user_id: "bob".to_owned(),
        options: object(json!({"a": 1})),
        question: None,
        created_at: at(50),
        ..full.clone()
    };
    let updated = conversations.update(&first, &changed, at(60)).await;
    assert_eq!(updated, Ok(()));
    let expected = Conversation {
        chat: full.chat.clone(),
        topic: full.topic.clone(),
        created_at: at(1),
        updated_at: at(60),
        ..changed
    };
    assert_eq!(find(stores, "c1:42").await, Some(expected));
    let unknown = conversations
        .update(&first, &conversation("k9"), at(70))
        .await;
    assert_eq!(unknown, Ok(()));
    assert_eq!(find(stores, "k9").await, None);
    let foreign = conversations.find(&other_bot(), "c1:42").await;
    assert_eq!(foreign, Ok(None));
}

/// Known keys keep their conversation. No claim is needed.
pub async fn conversations_are_imported_once(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (stores, conversations) = (&suite.stores, &suite.stores.conversations);
    let first = claim(stores, &bot()).await;
    let known = conversations.create(&first, conversation("k1")).await;
    assert_eq!(known, Ok(conversation("k1")));
    let imported = || {
        ["k1", "k2", "k3", "k2"].map(|key| Conversation {
            thread_id: thread("old"),
            ..conversation(key)
        })
    };
    assert_eq!(conversations.import(imported().to_vec()).await, Ok(2));
    assert_eq!(conversations.import(imported().to_vec()).await, Ok(0));
    assert_eq!(conversations.import(vec![]).await, Ok(0));
    assert_eq!(find(stores, "k1").await, Some(conversation("k1")));
    assert_eq!(find(stores, "k3").await, Some(imported()[2].clone()));
}

/// Keys that begin with the old id follow; a conversation whose new key exists stays.
pub async fn renamed_chat_moves_conversations_and_links(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (stores, conversations) = (&suite.stores, &suite.stores.conversations);
    let first = claim(stores, &bot()).await;
    let keys = ["c1", "c1:42", "c12", "own", "c1:x", "c2:x"];
    for key in keys {
        let chat = if key == "c2:x" { "c2" } else { "c1" };
        let new = Conversation {
            chat: chat.to_owned(),
            ..conversation(key)
        };
        conversations.create(&first, new).await.expect("written");
        let linked = stores.outbox.link(&first, chat, key, key, at(2)).await;
        assert_eq!(linked, Ok(()));
    }
    let renamed = conversations.rename_chat(&first, "c1", "c2", at(9)).await;
    assert_eq!(renamed, Ok(()));
    let moved = [
        ("c1", "c2"),
        ("c1:42", "c2:42"),
        ("c12", "c12"),
        ("own", "own"),
    ];
    for (old, new) in moved {
        let expected = Conversation {
            chat: "c2".to_owned(),
            updated_at: at(9),
            ..conversation(new)
        };
        assert_eq!(find(stores, new).await, Some(expected));
        if old != new {
            assert_eq!(find(stores, old).await, None);
        }
        let link = stores.outbox.conversation_of(&bot(), "c2", old).await;
        assert_eq!(link, Ok(Some(new.to_owned())));
    }
    assert_eq!(find(stores, "c1:x").await, Some(conversation("c1:x")));
    let link = stores.outbox.conversation_of(&bot(), "c1", "c1:x").await;
    assert_eq!(link, Ok(Some("c1:x".to_owned())));
    let kept = find(stores, "c2:x").await.map(|kept| kept.updated_at);
    assert_eq!(kept, Some(at(1)));
}

/// Waiting messages follow to the new id, except those that a node has begun to handle.
pub async fn renamed_chat_moves_waiting_messages(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let stores = &suite.stores;
    let first = claim(stores, &bot()).await;
    let messages = [("begun", "c1:1"), ("new", "c1:1"), ("other", "own")];
    let messages = messages.map(|(id, conversation)| message(id, conversation));
    accept(stores, &first, messages.to_vec()).await;
    let begun = waiting(stores, "c1:1").await[0].id;
    assert_eq!(stores.inbox.begin(&first, &[begun]).await, Ok(()));
    let renamed = stores.conversations.rename_chat(&first, "c1", "c2", at(9));
    assert_eq!(renamed.await, Ok(()));
    assert_eq!(names(&waiting(stores, "c1:1").await), ["begun"]);
    for (conversation, name) in [("c2:1", "new"), ("own", "other")] {
        let rows = waiting(stores, conversation).await;
        assert_eq!(names(&rows), [name]);
        assert_eq!(rows[0].key.chat, "c2");
    }
    // A redelivery under the former id is recognized.
    let again = accept(stores, &first, vec![message("new", "c1:1")]).await;
    assert_eq!(again, [Acceptance::Duplicate]);
}

/// Pending messages and dead letters follow to the new id; sent messages and other chats stay.
pub async fn renamed_chat_moves_unsent_messages(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (stores, outbox) = (&suite.stores, &suite.stores.outbox);
    let first = claim(stores, &bot()).await;
    let messages = [
        (1, "c1", "c1:1"),
        (2, "c1", "c1:1"),
        (3, "c1", "own"),
        (4, "c12", "c12"),
    ];
    let messages = messages.map(|(n, chat, conversation)| NewOutgoing {
        conversation: conversation.to_owned(),
        ..outgoing(n, chat, Value::Null)
    });
    let stored = outbox.enqueue(&first, messages.to_vec(), at(1)).await;
    assert_eq!(stored, Ok(()));
    let id = Uuid::from_u128;
    assert_eq!(outbox.sent(&first, id(1), vec![], at(2)).await, Ok(()));
    assert_eq!(outbox.bury(&first, id(2), "refused", at(2)).await, Ok(()));
    let renamed = stores.conversations.rename_chat(&first, "c1", "c2", at(9));
    assert_eq!(renamed.await, Ok(()));
    let filter = OutgoingFilter {
        limit: 9,
        ..OutgoingFilter::default()
    };
    let rows = outbox.list(&filter).await.expect("read");
    let places = rows.iter().rev().map(|row| {
        let message = &row.message;
        (message.chat.as_str(), message.conversation.as_str())
    });
    let expected = [
        ("c1", "c1:1"),
        ("c2", "c2:1"),
        ("c2", "own"),
        ("c12", "c12"),
    ];
    assert_eq!(places.collect::<Vec<_>>(), expected);
    assert_eq!(outbox.next(&bot(), "c1").await, Ok(None));
    let next = outbox.next(&bot(), "c2").await.expect("read");
    assert_eq!(next.map(|row| row.message.id), Some(id(3)));
}
