//! Requirements of full inboxes.

use deerflow_runtime::testkit::at;

use super::{ChannelSuite, batch, bot, claim, message, names, waiting};
use crate::channels::{
    Acceptance, AccountClaim, ChannelStoreError, ChannelStores, InboxBatch, InboxEnd, InboxLimits,
    InboxState, NewInboxMessage, Urgency,
};

/// Limits of these tests.
const SMALL: InboxLimits = InboxLimits {
    per_account: 3,
    per_conversation: 2,
};

async fn accept(
    stores: &ChannelStores,
    claim: &AccountClaim,
    ids: &[(&str, &str)],
) -> Result<Vec<Acceptance>, ChannelStoreError> {
    let messages = ids
        .iter()
        .map(|(id, conversation)| message(id, conversation))
        .collect();
    let new = InboxBatch {
        cursor: Some(format!("after {}", ids[0].0)),
        ..batch(messages)
    };
    stores.inbox.accept(claim, new, SMALL, at(1)).await
}

fn urgent(id: &str) -> NewInboxMessage {
    NewInboxMessage {
        urgency: Urgency::Immediate,
        ..message(id, "k1")
    }
}

/// The other messages of the batch and its cursor are stored. A duplicate stays a duplicate.
pub async fn full_conversation_refuses_only_its_messages(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let first = claim(&suite.stores, &bot()).await;
    let ids = [("a", "k1"), ("b", "k1"), ("c", "k1"), ("d", "k2")];
    let (stored, full) = (Acceptance::Stored, Acceptance::ConversationFull);
    assert_eq!(
        accept(&suite.stores, &first, &ids).await,
        Ok(vec![stored, stored, full, stored])
    );
    let cursor = suite.stores.inbox.cursor(&bot()).await;
    assert_eq!(cursor, Ok(Some("after a".to_owned())));
    assert_eq!(
        accept(&suite.stores, &first, &[("e", "k1"), ("a", "k1")]).await,
        Ok(vec![full, Acceptance::Duplicate])
    );
    assert_eq!(names(&waiting(&suite.stores, "k1").await), ["a", "b"]);
    // An ended message makes room.
    let end = InboxEnd {
        state: InboxState::Refused,
        note: None,
    };
    let id = message("a", "k1").key.id();
    suite
        .stores
        .inbox
        .end(&first, &[id], end, vec![], at(2))
        .await
        .expect("written");
    assert_eq!(
        accept(&suite.stores, &first, &[("e", "k1")]).await,
        Ok(vec![stored])
    );
}

/// Neither messages nor the cursor are written. Duplicates alone are no reason to refuse.
pub async fn full_inbox_writes_nothing(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let first = claim(&suite.stores, &bot()).await;
    let two = [("a", "k1"), ("b", "k2")];
    let stored = accept(&suite.stores, &first, &two).await;
    assert_eq!(stored, Ok(vec![Acceptance::Stored; 2]));
    let refused = accept(&suite.stores, &first, &[("c", "k3"), ("d", "k4")]).await;
    assert_eq!(refused, Err(ChannelStoreError::InboxFull));
    let cursor = suite.stores.inbox.cursor(&bot()).await;
    assert_eq!(cursor, Ok(Some("after a".to_owned())));
    assert_eq!(waiting(&suite.stores, "k3").await, []);
    let third = accept(&suite.stores, &first, &[("c", "k3")]).await;
    assert_eq!(third, Ok(vec![Acceptance::Stored]));
    let known = accept(&suite.stores, &first, &two).await;
    assert_eq!(known, Ok(vec![Acceptance::Duplicate; 2]));
}

/// Urgent messages enter full conversations and accounts, and do not count.
pub async fn urgent_messages_are_never_limited(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (inbox, first) = (&suite.stores.inbox, claim(&suite.stores, &bot()).await);
    let many: Vec<_> = (0..5).map(|n| urgent(&format!("s{n}"))).collect();
    assert_eq!(
        inbox.accept(&first, batch(many), SMALL, at(1)).await,
        Ok(vec![Acceptance::Stored; 5])
    );
    let ids = [("a", "k1"), ("b", "k1"), ("c", "k2")];
    assert_eq!(
        accept(&suite.stores, &first, &ids).await,
        Ok(vec![Acceptance::Stored; 3])
    );
    let more = batch(vec![urgent("s9")]);
    assert_eq!(
        inbox.accept(&first, more, SMALL, at(2)).await,
        Ok(vec![Acceptance::Stored])
    );
    assert_eq!(inbox.backlog(&bot()).await.map(|(count, _)| count), Ok(9));
}
