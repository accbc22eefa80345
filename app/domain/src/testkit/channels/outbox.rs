//! Requirements of messages to be sent.

use deerflow_runtime::testkit::{at, at_once};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{ChannelSuite, bot, claim, other_bot, outgoing};
use crate::channels::{
    AccountClaim, ChannelStores, NewOutgoing, Outgoing, OutgoingFilter, OutgoingState,
};

pub(super) async fn enqueue(
    stores: &ChannelStores,
    claim: &AccountClaim,
    messages: Vec<NewOutgoing>,
    n: i64,
) {
    let stored = stores.outbox.enqueue(claim, messages, at(n)).await;
    assert_eq!(stored, Ok(()));
}

pub(super) async fn next(stores: &ChannelStores, chat: &str) -> Option<Outgoing> {
    stores.outbox.next(&bot(), chat).await.expect("read")
}

pub(super) fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

fn all() -> OutgoingFilter {
    OutgoingFilter {
        limit: 100,
        ..OutgoingFilter::default()
    }
}

async fn listed(stores: &ChannelStores, filter: OutgoingFilter) -> Vec<Outgoing> {
    stores.outbox.list(&filter).await.expect("read")
}

fn numbers(rows: &[Outgoing]) -> Vec<u128> {
    rows.iter().map(|row| row.message.id.as_u128()).collect()
}

/// The first body of an id holds, also among concurrent writes and within one write.
pub async fn outgoing_message_is_stored_once(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let stores = &suite.stores;
    let first = claim(stores, &bot()).await;
    let full = NewOutgoing {
        part: 3,
        ..outgoing(1, "c1", json!({"text": "ü"}))
    };
    let twice = vec![full.clone(), outgoing(1, "c2", json!({"other": 1}))];
    enqueue(stores, &first, twice, 1).await;
    enqueue(stores, &first, vec![outgoing(1, "c2", Value::Null)], 2).await;
    enqueue(stores, &first, vec![], 2).await;
    let row = next(stores, "c1").await.expect("there");
    let expected = Outgoing {
        message: full,
        seq: row.seq,
        state: OutgoingState::Pending,
        attempts: 0,
        not_before: at(1),
        progress: Value::Null,
        error: None,
        platform_ids: vec![],
        created_at: at(1),
        ended_at: None,
    };
    assert_eq!(row, expected);
    at_once((0..8).map(|n| {
        let (suite, first) = (suite.clone(), first.clone());
        async move {
            let messages = vec![
                outgoing(50, "c1", json!(n)),
                outgoing(60 + n, "c1", json!(n)),
            ];
            enqueue(&suite.stores, &first, messages, 3).await;
        }
    }))
    .await;
    assert_eq!(stores.outbox.depth(&bot()).await, Ok(10));
    assert_eq!(stores.outbox.depth(&other_bot()).await, Ok(0));
}

/// The first pending message of a chat is returned until it is sent, due or not.
pub async fn outbox_is_ordered_per_chat(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let stores = &suite.stores;
    let first = claim(stores, &bot()).await;
    let messages = [(9, "c2"), (3, "c1"), (5, "c2"), (1, "c1")];
    let messages = messages.map(|(n, chat)| outgoing(n, chat, json!(null)));
    enqueue(stores, &first, messages.to_vec(), 1).await;
    let chats = async || stores.outbox.pending_chats(&bot()).await.expect("read");
    assert_eq!(chats().await, ["c2", "c1"]);
    assert_eq!(next(stores, "c3").await, None);
    assert_eq!(
        stores.outbox.next(&other_bot(), "c1").await,
        Ok(None),
        "another account"
    );
    let postponed = stores.outbox.retry(&first, id(9), "x", at(99), true).await;
    assert_eq!(postponed, Ok(()));
    for (n, chat, after) in [(9, "c2", 5), (3, "c1", 1)] {
        let row = next(stores, chat).await.expect("there");
        assert_eq!(row.message.id, id(n));
        let sent = stores.outbox.sent(&first, id(n), vec![], at(2)).await;
        assert_eq!(sent, Ok(()));
        let row = next(stores, chat).await.expect("there");
        assert_eq!(row.message.id, id(after));
    }
    assert_eq!(
        stores.outbox.bury(&first, id(5), "gone", at(3)).await,
        Ok(())
    );
    assert_eq!(chats().await, ["c1"]);
    assert_eq!(stores.outbox.depth(&bot()).await, Ok(1));
}

/// An attempt that met a rate limit does not count. Sent messages change no more.
pub async fn retried_message_records_attempts_and_progress(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (stores, outbox) = (&suite.stores, &suite.stores.outbox);
    let first = claim(stores, &bot()).await;
    enqueue(stores, &first, vec![outgoing(1, "c1", json!({}))], 1).await;
    let steps = async |id| {
        outbox.begin(&first, id).await.expect("written");
        outbox.begin(&first, id).await.expect("written");
        let limited = outbox.retry(&first, id, "limited", at(33), false).await;
        assert_eq!(limited, Ok(()));
        let saved = outbox.save_progress(&first, id, json!(["9"])).await;
        assert_eq!(saved, Ok(()));
    };
    steps(id(1)).await;
    steps(id(2)).await;
    let row = next(stores, "c1").await.expect("there");
    let expected = Outgoing {
        attempts: 1,
        not_before: at(33),
        error: Some("limited".to_owned()),
        progress: json!(["9"]),
        ..row.clone()
    };
    assert_eq!(row, expected);
    let ids = || vec!["p1".to_owned(), "p2".to_owned()];
    assert_eq!(outbox.sent(&first, id(1), ids(), at(40)).await, Ok(()));
    steps(id(1)).await;
    assert_eq!(outbox.sent(&first, id(1), vec![], at(50)).await, Ok(()));
    assert_eq!(outbox.bury(&first, id(1), "late", at(60)).await, Ok(()));
    let expected = Outgoing {
        state: OutgoingState::Sent,
        error: None,
        platform_ids: ids(),
        ended_at: Some(at(40)),
        ..expected
    };
    assert_eq!(listed(stores, all()).await, [expected]);
}

/// A dead letter becomes pending with its earlier progress and position.
pub async fn dead_letter_is_sent_again(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (stores, outbox) = (&suite.stores, &suite.stores.outbox);
    let first = claim(stores, &bot()).await;
    let messages = [1, 2].map(|n| outgoing(n, "c1", json!({})));
    enqueue(stores, &first, messages.to_vec(), 1).await;
    outbox.begin(&first, id(1)).await.expect("written");
    let saved = outbox.save_progress(&first, id(1), json!("half")).await;
    assert_eq!(saved, Ok(()));
    assert_eq!(outbox.resend(id(1), at(2)).await, Ok(false), "pending");
    assert_eq!(outbox.bury(&first, id(1), "blocked", at(3)).await, Ok(()));
    let dead = listed(stores, all()).await.remove(1);
    assert_eq!(
        (dead.state, dead.error.as_deref(), dead.ended_at),
        (OutgoingState::Dead, Some("blocked"), Some(at(3)))
    );
    assert_eq!(outbox.resend(id(1), at(4)).await, Ok(true));
    assert_eq!(outbox.resend(id(1), at(5)).await, Ok(false));
    assert_eq!(outbox.resend(id(7), at(5)).await, Ok(false));
    let expected = Outgoing {
        state: OutgoingState::Pending,
        attempts: 0,
        not_before: at(4),
        created_at: at(4),
        ended_at: None,
        ..dead
    };
    assert_eq!(next(stores, "c1").await, Some(expected));
}

/// The newest rows come first.
pub async fn outbox_is_listed_by_platform_and_state(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let stores = &suite.stores;
    let first = claim(stores, &bot()).await;
    let messages = [1, 2, 3].map(|n| outgoing(n, "c1", json!({})));
    enqueue(stores, &first, messages.to_vec(), 1).await;
    let other = claim(stores, &other_bot()).await;
    let foreign = NewOutgoing {
        account: other_bot(),
        ..outgoing(4, "c1", json!({}))
    };
    enqueue(stores, &other, vec![foreign], 1).await;
    let buried = stores.outbox.bury(&first, id(2), "x", at(2)).await;
    assert_eq!(buried, Ok(()));
    assert_eq!(numbers(&listed(stores, all()).await), [4, 3, 2, 1]);
    let of = |provider: Option<&str>, state, limit| OutgoingFilter {
        provider: provider.map(str::to_owned),
        state,
        limit,
    };
    let telegram = listed(stores, of(Some("telegram"), None, 2)).await;
    assert_eq!(numbers(&telegram), [3, 2]);
    let dead = listed(stores, of(None, Some(OutgoingState::Dead), 9)).await;
    assert_eq!(numbers(&dead), [2]);
    let both = listed(stores, of(Some("slack"), Some(OutgoingState::Pending), 9)).await;
    assert_eq!(numbers(&both), [4]);
}
