//! Tests of the inbox.

use async_trait::async_trait;
use chrono::DateTime;
use parking_lot::Mutex;
use serde_json::Value;

use super::*;
use crate::platform::{Chat, ChatKind, ChatMessage, Sender};

/// Sink that takes every batch, or refuses those with a chat.
#[derive(Default)]
struct Chats {
    stored: Mutex<Vec<String>>,
    refused: Mutex<Option<String>>,
}

#[async_trait]
impl EventSink for Chats {
    fn connected(&self) {}

    async fn accept(&self, events: Vec<Event>, _: Option<String>) -> Result<(), SinkError> {
        let refused = self.refused.lock().clone();
        if events
            .iter()
            .any(|event| Some(&event.chat.id) == refused.as_ref())
        {
            return Err(SinkError::Full);
        }
        self.stored
            .lock()
            .extend(events.into_iter().map(|event| event.id));
        Ok(())
    }
}

fn pending(chat: &str, id: &str, deadline: Instant) -> Pending {
    Pending {
        event: Event {
            id: id.to_owned(),
            workspace: String::new(),
            chat: Chat {
                id: chat.to_owned(),
                kind: ChatKind::Group,
                parent: None,
            },
            sender: Sender {
                id: "U1".to_owned(),
                name: None,
            },
            at: DateTime::UNIX_EPOCH,
            body: EventBody::Message(ChatMessage::default()),
            context: Value::Null,
        },
        ack: Some(Ack {
            link: 1,
            envelope: id.to_owned(),
            deadline,
        }),
        fetched: None,
    }
}

/// Stores until nothing more can be stored, and returns the acknowledged envelopes.
async fn settle(inbox: &mut Inbox<'_>, now: Instant) -> Vec<String> {
    let mut acked = Vec::new();
    loop {
        inbox.start(now);
        let Some(flight) = &mut inbox.flight else {
            return acked;
        };
        let landed = flight.await;
        let acks = inbox.land(landed, now).unwrap();
        acked.extend(acks.into_iter().map(|ack| ack.envelope));
    }
}

#[tokio::test]
async fn full_chat_keeps_its_order_and_stops_no_other() {
    let sink = Chats::default();
    *sink.refused.lock() = Some("full".to_owned());
    let mut inbox = Inbox::new(&sink, Cursors::default());
    let now = Instant::now();
    let deadline = now + Duration::from_secs(3);
    for (chat, id) in [("full", "1.1"), ("a", "2.1"), ("full", "3.1"), ("a", "4.1")] {
        inbox.push(pending(chat, id, deadline));
    }
    assert_eq!(settle(&mut inbox, now).await, ["2.1", "4.1"]);
    assert_eq!(inbox.len(), 2);
    *sink.refused.lock() = None;
    assert_eq!(settle(&mut inbox, now + RETRY).await, ["1.1", "3.1"]);
    assert_eq!(*sink.stored.lock(), ["2.1", "4.1", "1.1", "3.1"]);
}

#[tokio::test]
async fn late_event_is_dropped_without_an_acknowledgement() {
    let sink = Chats::default();
    let mut inbox = Inbox::new(&sink, Cursors::default());
    let now = Instant::now();
    inbox.push(pending("a", "1.1", now + Duration::from_secs(3)));
    let late = now + Duration::from_secs(4);
    assert!(settle(&mut inbox, late).await.is_empty());
    assert_eq!(inbox.len(), 0);
    assert!(sink.stored.lock().is_empty());
}

#[tokio::test]
async fn batch_that_was_stored_too_late_is_not_acknowledged() {
    let sink = Chats::default();
    let mut inbox = Inbox::new(&sink, Cursors::default());
    let now = Instant::now();
    inbox.push(pending("a", "1.1", now + Duration::from_secs(3)));
    inbox.start(now);
    let landed = inbox.flight.as_mut().unwrap().await;
    let acks = inbox.land(landed, now + Duration::from_secs(3)).unwrap();
    assert!(acks.is_empty());
    assert_eq!(*sink.stored.lock(), ["1.1"]);
}

#[tokio::test]
async fn waiting_events_are_stored_in_one_batch() {
    let sink = Chats::default();
    let mut inbox = Inbox::new(&sink, Cursors::default());
    let now = Instant::now();
    for number in 0..MAX_BATCH + 1 {
        inbox.push(pending(
            "a",
            &format!("{number}.1"),
            now + Duration::from_secs(3),
        ));
    }
    inbox.start(now);
    assert_eq!(inbox.len(), 1);
}
