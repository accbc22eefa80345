//! Requirements of inbox rows on their way to an end.

use deerflow_runtime::testkit::at;
use serde_json::json;
use uuid::Uuid;

use super::{ChannelSuite, accept, bot, claim, message, names, other_bot, outgoing, waiting};
use crate::channels::{
    Acceptance, InboxEnd, InboxFilter, InboxMessage, InboxState, MAX_RAW_BYTES, NewInboxMessage,
    OutgoingState,
};

fn end(state: InboxState, note: &str) -> InboxEnd {
    InboxEnd {
        state,
        note: Some(note.to_owned()),
    }
}

async fn listed(suite: &ChannelSuite, filter: InboxFilter) -> Vec<InboxMessage> {
    suite.stores.inbox.list(&filter).await.expect("read")
}

fn all() -> InboxFilter {
    InboxFilter {
        limit: 100,
        ..InboxFilter::default()
    }
}

/// Unknown ids have no effect, and neither have ended rows.
pub async fn waiting_row_records_claims_progress_and_failures(
    open: impl AsyncFn() -> ChannelSuite,
) {
    let suite = open().await;
    let (inbox, first) = (&suite.stores.inbox, claim(&suite.stores, &bot()).await);
    let messages = vec![message("m1", "k1"), message("m2", "k1")];
    accept(&suite.stores, &first, messages).await;
    let unknown = Uuid::from_u128(5);
    let ids = [message("m1", "k1").key.id(), unknown];
    inbox.begin(&first, &ids).await.expect("written");
    inbox.begin(&first, &ids).await.expect("written");
    inbox.begin(&first, &[]).await.expect("written");
    for id in ids {
        let progress = inbox.save_progress(&first, id, json!({"live": "9"})).await;
        assert_eq!(progress, Ok(()));
    }
    let fail = async |note, not_before, now| {
        let failed = inbox.fail(&first, &ids, note, at(not_before), at(now));
        assert_eq!(failed.await, Ok(()));
    };
    fail("first", 20, 10).await;
    fail("second", 40, 30).await;
    let rows = waiting(&suite.stores, "k1").await;
    let expected = InboxMessage {
        claims: 2,
        progress: json!({"live": "9"}),
        failures: 2,
        failed_since: Some(at(10)),
        not_before: Some(at(40)),
        note: Some("second".to_owned()),
        ..rows[0].clone()
    };
    assert_eq!(rows[0], expected);
    assert_eq!((rows[1].claims, rows[1].failures), (0, 0));
    let done = end(InboxState::Answered, "done");
    assert_eq!(inbox.end(&first, &ids, done, vec![], at(50)).await, Ok(()));
    inbox.begin(&first, &ids).await.expect("written");
    fail("late", 70, 60).await;
    let ended = listed(&suite, all()).await.remove(1);
    let expected = InboxMessage {
        state: InboxState::Answered,
        note: Some("done".to_owned()),
        ended_at: Some(at(50)),
        ..expected
    };
    assert_eq!(ended, expected);
}

/// A second end changes no ended row and stores only unknown replies.
pub async fn ended_rows_keep_their_end_and_replies(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (inbox, first) = (&suite.stores.inbox, claim(&suite.stores, &bot()).await);
    let messages = vec![
        message("m1", "k1"),
        message("m2", "k1"),
        message("m3", "k1"),
    ];
    let ids: Vec<Uuid> = messages.iter().map(|message| message.key.id()).collect();
    accept(&suite.stores, &first, messages).await;
    let replies = |from: u128, to: u128| {
        (from..to)
            .map(|n| outgoing(n, "c1", json!({"part": n.to_string()})))
            .collect::<Vec<_>>()
    };
    let answered = end(InboxState::Answered, "a");
    let ended = inbox.end(&first, &ids[..2], answered, replies(1, 3), at(5));
    assert_eq!(ended.await, Ok(()));
    let aside = end(InboxState::SetAside, "b");
    let ended = inbox.end(&first, &ids[1..], aside, replies(2, 4), at(6));
    assert_eq!(ended.await, Ok(()));
    let ends: Vec<_> = listed(&suite, all())
        .await
        .into_iter()
        .map(|row| (row.state, row.note, row.ended_at))
        .collect();
    let note = |text: &str| Some(text.to_owned());
    assert_eq!(
        ends,
        [
            (InboxState::SetAside, note("b"), Some(at(6))),
            (InboxState::Answered, note("a"), Some(at(5))),
            (InboxState::Answered, note("a"), Some(at(5))),
        ]
    );
    assert_eq!(waiting(&suite.stores, "k1").await, []);
    assert_eq!(suite.stores.outbox.depth(&bot()).await, Ok(3));
    let next = suite.stores.outbox.next(&bot(), "c1").await;
    let next = next.expect("read").expect("there");
    assert_eq!(next.message, replies(1, 2)[0]);
    assert_eq!(
        (next.state, next.created_at),
        (OutgoingState::Pending, at(5))
    );
}

/// Rows that ended before the time are deleted, in portions. A deleted row is accepted again.
pub async fn ended_rows_of_inbox_are_forgotten(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (inbox, first) = (&suite.stores.inbox, claim(&suite.stores, &bot()).await);
    for n in 0..5 {
        let new = message(&format!("m{n}"), "k1");
        let id = new.key.id();
        accept(&suite.stores, &first, vec![new]).await;
        if n < 4 {
            let end = end(InboxState::Answered, "");
            let ended = inbox.end(&first, &[id], end, vec![], at(10 + n)).await;
            assert_eq!(ended, Ok(()));
        }
    }
    assert_eq!(inbox.forget(at(10), 9).await, Ok(0));
    assert_eq!(inbox.forget(at(13), 2).await, Ok(2));
    assert_eq!(inbox.forget(at(13), 2).await, Ok(1));
    assert_eq!(inbox.forget(at(13), 2).await, Ok(0));
    let rows = listed(&suite, all()).await;
    assert_eq!(names(&rows), ["m4", "m3"]);
    let last = rows[0].seq;
    let again = accept(&suite.stores, &first, vec![message("m0", "k1")]).await;
    assert_eq!(again, [Acceptance::Stored]);
    assert!(listed(&suite, all()).await[0].seq > last);
}

/// The newest rows come first.
pub async fn inbox_is_listed_by_platform_and_state(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let first = claim(&suite.stores, &bot()).await;
    let messages = ["a", "b", "c"].map(|id| message(id, "k1"));
    accept(&suite.stores, &first, messages.to_vec()).await;
    let other = claim(&suite.stores, &other_bot()).await;
    let foreign = NewInboxMessage {
        key: super::key(&other_bot(), "d"),
        ..message("d", "k1")
    };
    accept(&suite.stores, &other, vec![foreign]).await;
    let id = message("b", "k1").key.id();
    let inbox = &suite.stores.inbox;
    let refused = end(InboxState::Refused, "");
    let ended = inbox.end(&first, &[id], refused, vec![], at(2)).await;
    assert_eq!(ended, Ok(()));
    assert_eq!(names(&listed(&suite, all()).await), ["d", "c", "b", "a"]);
    let of = |provider: Option<&str>, state, limit| InboxFilter {
        provider: provider.map(str::to_owned),
        state,
        limit,
    };
    let telegram = listed(&suite, of(Some("telegram"), None, 2)).await;
    assert_eq!(names(&telegram), ["c", "b"]);
    let refused = listed(&suite, of(None, Some(InboxState::Refused), 9)).await;
    assert_eq!(names(&refused), ["b"]);
    let both = listed(&suite, of(Some("slack"), Some(InboxState::Waiting), 9)).await;
    assert_eq!(names(&both), ["d"]);
}

/// Content is returned unchanged. In ids and names, stores may replace NUL characters, and find
/// the row by the original nevertheless.
pub async fn long_and_unusual_texts_are_returned_unchanged(open: impl AsyncFn() -> ChannelSuite) {
    let suite = open().await;
    let (inbox, first) = (&suite.stores.inbox, claim(&suite.stores, &bot()).await);
    let text = format!("ü \u{0} 😀 {}", "x".repeat(MAX_RAW_BYTES));
    let key = "c1:\u{0} '😀' ;--";
    let new = NewInboxMessage {
        event: json!({"text": text, "\u{0}": [null, 1.5, i64::MAX]}),
        ..message("m\u{0}😀", key)
    };
    accept(&suite.stores, &first, vec![new.clone()]).await;
    let again = accept(&suite.stores, &first, vec![new.clone()]).await;
    assert_eq!(again, [Acceptance::Duplicate]);
    let rows = waiting(&suite.stores, key).await;
    assert_eq!((&rows[0].event, rows[0].id), (&new.event, new.key.id()));
    let progress = json!({"\u{0}": "\u{0}"});
    let id = rows[0].id;
    let saved = inbox.save_progress(&first, id, progress.clone()).await;
    assert_eq!(saved, Ok(()));
    let failed = inbox.fail(&first, &[id], "nul \u{0}", at(3), at(2)).await;
    assert_eq!(failed, Ok(()));
    let rows = waiting(&suite.stores, key).await;
    assert_eq!((&rows[0].progress, rows[0].failures), (&progress, 1));
    let reply = outgoing(1, "c\u{0}", json!({"text": text}));
    let answered = end(InboxState::Answered, "\u{0}");
    let ended = inbox
        .end(&first, &[id], answered, vec![reply.clone()], at(4))
        .await;
    assert_eq!(ended, Ok(()));
    let outbox = &suite.stores.outbox;
    let next = outbox.next(&bot(), "c\u{0}").await.expect("read");
    assert_eq!(next.map(|row| row.message.body), Some(reply.body));
    let sent = outbox
        .sent(&first, reply.id, vec!["p\u{0}".to_owned()], at(5))
        .await;
    assert_eq!(sent, Ok(()));
    let found = outbox.conversation_of(&bot(), "c\u{0}", "p\u{0}").await;
    assert_eq!(found.map(|found| found.is_some()), Ok(true));
}
