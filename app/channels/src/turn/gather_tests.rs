//! Tests of the grouping of messages.

use deerflow_domain::channels::{Account, InboxState, MessageKey, Urgency};
use serde_json::Value;
use uuid::Uuid;

use super::*;
use crate::platform::{Chat, ChatKind, IncomingFile, Sender};

fn at(ms: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::milliseconds(ms)
}

fn received(
    ms: i64,
    sender: &str,
    text: &str,
    files: usize,
    album: Option<&str>,
) -> ReceivedMessage {
    let file = IncomingFile {
        name: None,
        media_type: None,
        size: None,
        reference: Value::Null,
    };
    let event = Event {
        id: ms.to_string(),
        workspace: String::new(),
        chat: Chat {
            id: "c".to_owned(),
            kind: ChatKind::Direct,
            parent: None,
        },
        sender: Sender {
            id: sender.to_owned(),
            name: None,
        },
        at: at(ms),
        body: EventBody::Message(ChatMessage {
            text: text.to_owned(),
            files: vec![file; files],
            album: album.map(str::to_owned),
            ..ChatMessage::default()
        }),
        context: Value::Null,
    };
    let row = InboxMessage {
        id: Uuid::from_u128(ms as u128),
        seq: ms,
        key: MessageKey {
            account: Account::new("p", "a"),
            workspace: String::new(),
            chat: "c".to_owned(),
            message: ms.to_string(),
        },
        conversation: "c".to_owned(),
        urgency: Urgency::InOrder,
        event: Value::Null,
        state: InboxState::Waiting,
        note: None,
        claims: 0,
        failures: 0,
        failed_since: None,
        not_before: None,
        progress: Value::Null,
        received_at: at(ms),
        ended_at: None,
    };
    ReceivedMessage { row, event }
}

#[test]
fn plain_messages_are_handled_singly_and_at_once() {
    let waiting = [
        received(0, "u", "a", 0, None),
        received(1, "u", "b", 0, None),
    ];
    assert_eq!(first_group(&waiting, at(1)), Group::Complete(1));
}

#[test]
fn album_waits_for_its_further_parts() {
    let album = |ms| received(ms, "u", "", 1, Some("x"));
    let waiting = [album(0), album(10)];
    assert_eq!(first_group(&waiting, at(20)), Group::Until(at(760)));
    assert_eq!(first_group(&waiting, at(760)), Group::Complete(2));
    let followed = [album(0), album(10), received(20, "u", "next", 0, None)];
    assert_eq!(first_group(&followed, at(20)), Group::Complete(3));
}

#[test]
fn file_and_text_of_the_same_person_are_one_message() {
    let file = received(0, "u", "", 1, None);
    let text = |ms, sender| received(ms, sender, "what is it?", 0, None);
    assert_eq!(
        first_group(&[file.clone(), text(700, "u")], at(700)),
        Group::Complete(2)
    );
    assert_eq!(
        first_group(&[file.clone(), text(800, "u")], at(800)),
        Group::Complete(1)
    );
    assert_eq!(
        first_group(&[file.clone(), text(700, "v")], at(700)),
        Group::Complete(1)
    );
    assert_eq!(
        first_group(&[file.clone(), received(5, "u", "/new", 0, None)], at(5)),
        Group::Complete(1)
    );
    assert_eq!(first_group(&[file], at(-100_000)), Group::Complete(1));
}

#[test]
fn group_of_an_earlier_attempt_does_not_grow() {
    let mut first = received(0, "u", "", 1, Some("x"));
    first.row.claims = 1;
    let waiting = [first, received(10, "u", "", 1, Some("x"))];
    assert_eq!(first_group(&waiting, at(5_000)), Group::Complete(1));
}
