//! Requirements of accepted messages.

use deerflow_runtime::testkit::{at, at_once};

use super::{ChannelSuite, accept, batch, bot, claim, key, message, names, other_bot, waiting};
use crate::channels::{
    Acceptance, InboxBatch, InboxLimits, InboxMessage, InboxState, MessageKey, NewInboxMessage,
    Urgency,
};

/// Rows have their initial values, and the cursor is stored with them or alone.
pub async fn accept_stores_messages_and_cursor_together(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (inbox, first) = (&suite.stores.inbox, claim(&suite.stores, &bot()).await);
    assert_eq!(inbox.cursor(&bot()).await, Ok(None));
    let mut new = batch(vec![message("m1", "k1")]);
    new.cursor = Some("41".to_owned());
    let limits = InboxLimits::default();
    assert_eq!(
        inbox.accept(&first, new, limits, at(1)).await,
        Ok(vec![Acceptance::Stored])
    );
    assert_eq!(inbox.cursor(&bot()).await, Ok(Some("41".to_owned())));
    let rows = waiting(&suite.stores, "k1").await;
    let NewInboxMessage {
        key,
        conversation,
        urgency,
        event,
    } = message("m1", "k1");
    let expected = InboxMessage {
        id: key.id(),
        seq: rows[0].seq,
        key,
        conversation,
        urgency,
        event,
        state: InboxState::Waiting,
        note: None,
        claims: 0,
        failures: 0,
        failed_since: None,
        not_before: None,
        progress: serde_json::Value::Null,
        received_at: at(1),
        ended_at: None,
    };
    assert_eq!(rows, [expected]);
    let cursor_only = InboxBatch {
        messages: Vec::new(),
        cursor: Some("42".to_owned()),
    };
    assert_eq!(
        inbox.accept(&first, cursor_only, limits, at(2)).await,
        Ok(vec![])
    );
    let empty = InboxBatch::default();
    assert_eq!(inbox.accept(&first, empty, limits, at(2)).await, Ok(vec![]));
    assert_eq!(inbox.cursor(&bot()).await, Ok(Some("42".to_owned())));
    assert_eq!(inbox.cursor(&other_bot()).await, Ok(None));
    assert_eq!(inbox.backlog(&bot()).await, Ok((1, Some(at(1)))));
    assert_eq!(inbox.backlog(&other_bot()).await, Ok((0, None)));
}

/// A duplicate is found within a batch, among waiting and among ended rows. Each part of the key
/// distinguishes messages.
pub async fn redelivered_message_is_duplicate(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let first = claim(&suite.stores, &bot()).await;
    let with_key = |key: MessageKey| NewInboxMessage {
        key,
        ..message("m1", "k1")
    };
    let distinct = vec![
        message("m1", "k1"),
        with_key(MessageKey {
            workspace: "w".to_owned(),
            ..key(&bot(), "m1")
        }),
        with_key(MessageKey {
            chat: "c2".to_owned(),
            ..key(&bot(), "m1")
        }),
        with_key(key(&bot(), "press:m1")),
    ];
    let again = message("m1", "k2");
    let sent = [distinct.clone(), vec![again.clone()]].concat();
    let accepted = accept(&suite.stores, &first, sent).await;
    assert_eq!(accepted[..4], [Acceptance::Stored; 4]);
    assert_eq!(accepted[4], Acceptance::Duplicate);
    let again = accept(&suite.stores, &first, vec![again]).await;
    assert_eq!(again, [Acceptance::Duplicate]);
    let ids: Vec<_> = distinct.iter().map(|message| message.key.id()).collect();
    let end = crate::channels::InboxEnd {
        state: InboxState::Answered,
        note: None,
    };
    suite
        .stores
        .inbox
        .end(&first, &ids, end, vec![], at(3))
        .await
        .expect("written");
    let again = accept(&suite.stores, &first, distinct).await;
    assert_eq!(again, [Acceptance::Duplicate; 4]);
    assert_eq!(waiting(&suite.stores, "k1").await, []);
}

/// Of concurrent deliveries of one message, one is stored.
pub async fn concurrent_accepts_store_message_once(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let first = claim(&suite.stores, &bot()).await;
    let accepted = at_once((0..16).map(|n| {
        let (suite, first) = (suite.clone(), first.clone());
        async move {
            let own = format!("own{n}");
            let messages = vec![message("m1", "k1"), message(&own, "k1")];
            accept(&suite.stores, &first, messages).await
        }
    }))
    .await;
    let stored = accepted
        .iter()
        .filter(|accepted| accepted[0] == Acceptance::Stored);
    assert_eq!(stored.count(), 1, "{accepted:?}");
    assert!(
        accepted
            .iter()
            .all(|accepted| accepted[1] == Acceptance::Stored),
        "{accepted:?}"
    );
    assert_eq!(waiting(&suite.stores, "k1").await.len(), 17);
}

/// Conversations are ordered by their first waiting message, messages by their arrival.
pub async fn waiting_messages_are_ordered_by_arrival(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (inbox, first) = (&suite.stores.inbox, claim(&suite.stores, &bot()).await);
    let urgent = NewInboxMessage {
        urgency: Urgency::Immediate,
        ..message("stop", "k1")
    };
    let messages = ["z", "a", "m"].map(|id| message(id, "k2"));
    accept(&suite.stores, &first, messages.to_vec()).await;
    accept(&suite.stores, &first, vec![message("b", "k1"), urgent]).await;
    accept(&suite.stores, &first, vec![message("y", "k2")]).await;
    let rows = waiting(&suite.stores, "k2").await;
    assert_eq!(names(&rows), ["z", "a", "m", "y"]);
    assert!(rows.is_sorted_by(|a, b| a.seq < b.seq));
    let limited = inbox.waiting(&bot(), "k2", Urgency::InOrder, 2).await;
    assert_eq!(limited.as_deref().map(names), Ok(vec!["z", "a"]));
    let urgent = inbox.waiting(&bot(), "k1", Urgency::Immediate, 9).await;
    assert_eq!(urgent.as_deref().map(names), Ok(vec!["stop"]));
    assert_eq!(
        inbox.waiting_conversations(&bot()).await,
        Ok(vec![
            ("k2".to_owned(), Urgency::InOrder),
            ("k1".to_owned(), Urgency::InOrder),
            ("k1".to_owned(), Urgency::Immediate),
        ])
    );
    assert_eq!(inbox.waiting_conversations(&other_bot()).await, Ok(vec![]));
    let foreign = inbox.waiting(&other_bot(), "k2", Urgency::InOrder, 9).await;
    assert_eq!(foreign, Ok(vec![]));
}
