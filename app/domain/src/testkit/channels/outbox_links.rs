//! Requirements of links between messages of a platform and conversations.

use deerflow_runtime::testkit::at;
use serde_json::json;

use super::outbox::{enqueue, id, next};
use super::{ChannelSuite, bot, claim, other_bot, outgoing};

/// The first record of a message holds, whether it was sent or received.
pub async fn first_link_of_message_holds(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (stores, outbox) = (&suite.stores, &suite.stores.outbox);
    let first = claim(stores, &bot()).await;
    let messages = [1, 2].map(|n| outgoing(n, "c1", json!({})));
    enqueue(stores, &first, messages.to_vec(), 1).await;
    let link = async |platform_id, conversation| {
        let linked = outbox.link(&first, "c1", platform_id, conversation, at(2));
        assert_eq!(linked.await, Ok(()));
    };
    let found = async |chat, platform_id| {
        let found = outbox.conversation_of(&bot(), chat, platform_id).await;
        found.expect("read")
    };
    link("p1", "k1").await;
    let ids = ["p1", "p2", "p2"].map(str::to_owned);
    let sent = outbox.sent(&first, id(1), ids.to_vec(), at(3)).await;
    assert_eq!(sent, Ok(()));
    link("p2", "k2").await;
    assert_eq!(found("c1", "p1").await.as_deref(), Some("k1"));
    assert_eq!(found("c1", "p2").await.as_deref(), Some("c1:k"));
    assert_eq!(found("c2", "p1").await, None);
    assert_eq!(found("c1", "p3").await, None);
    let foreign = outbox.conversation_of(&other_bot(), "c1", "p1").await;
    assert_eq!(foreign, Ok(None));
}

/// Ended rows are deleted, and links, which may stay longer; at most the limit. Pending rows stay.
pub async fn ended_rows_of_outbox_are_forgotten(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (stores, outbox) = (&suite.stores, &suite.stores.outbox);
    let first = claim(stores, &bot()).await;
    let messages = [1, 2, 3].map(|n| outgoing(n, "c1", json!({})));
    enqueue(stores, &first, messages.to_vec(), 1).await;
    let sent = outbox
        .sent(&first, id(1), vec!["p1".to_owned()], at(10))
        .await;
    assert_eq!(sent, Ok(()));
    assert_eq!(outbox.bury(&first, id(2), "x", at(11)).await, Ok(()));
    assert_eq!(outbox.link(&first, "c1", "p9", "k", at(30)).await, Ok(()));
    assert_eq!(outbox.forget(at(10), at(10), 9).await, Ok(0));
    assert_eq!(outbox.forget(at(20), at(10), 1).await, Ok(1));
    assert_eq!(outbox.forget(at(20), at(10), 9).await, Ok(1));
    let kept = outbox.conversation_of(&bot(), "c1", "p1").await;
    assert_eq!(kept, Ok(Some("c1:k".to_owned())));
    assert_eq!(outbox.forget(at(20), at(20), 9).await, Ok(1));
    assert_eq!(outbox.forget(at(20), at(20), 9).await, Ok(0));
    assert_eq!(outbox.conversation_of(&bot(), "c1", "p1").await, Ok(None));
    let newer = outbox.conversation_of(&bot(), "c1", "p9").await;
    assert_eq!(newer, Ok(Some("k".to_owned())));
    let pending = next(stores, "c1").await.expect("there");
    assert_eq!(pending.message.id, id(3));
}
