//! Order and completeness of the events that wait.

use chrono::DateTime;
use parking_lot::Mutex;

use super::*;
use crate::platform::{Chat, ChatKind, ChatMessage, EventBody, Sender};

/// Inbox that never finishes, or fails once.
#[derive(Default)]
struct Inbox {
    hangs: bool,
    errors: Mutex<Vec<SinkError>>,
    stored: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl EventSink for Inbox {
    fn connected(&self) {}

    async fn accept(&self, events: Vec<Event>, _: Option<String>) -> Result<(), SinkError> {
        if self.hangs {
            std::future::pending::<()>().await;
        }
        if let Some(error) = self.errors.lock().pop() {
            return Err(error);
        }
        let ids = events.into_iter().map(|event| event.id);
        self.stored.lock().extend(ids);
        Ok(())
    }
}

fn event(number: usize) -> Event {
    Event {
        id: number.to_string(),
        workspace: String::new(),
        chat: Chat {
            id: "c".to_owned(),
            kind: ChatKind::Direct,
            parent: None,
        },
        sender: Sender {
            id: "s".to_owned(),
            name: None,
        },
        at: DateTime::UNIX_EPOCH,
        body: EventBody::Message(ChatMessage::default()),
        context: serde_json::Value::Null,
    }
}

fn ids(events: &[Event]) -> Vec<usize> {
    events
        .iter()
        .map(|event| event.id.parse().unwrap())
        .collect()
}

#[tokio::test]
async fn events_being_stored_are_part_of_the_rest() {
    let inbox = Inbox {
        hangs: true,
        ..Inbox::default()
    };
    let mut intake = Intake::new(&inbox, vec![event(0)]);
    for number in 1..40 {
        intake.add(event(number));
    }
    assert!(futures_util::FutureExt::now_or_never(intake.advance()).is_none());
    assert_eq!(ids(&intake.into_rest()), (0..40).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn refused_events_keep_their_order() {
    let inbox = Inbox {
        errors: Mutex::new(vec![SinkError::Unavailable, SinkError::Full]),
        ..Inbox::default()
    };
    let mut intake = Intake::new(&inbox, (0..40).map(event).collect());
    assert_eq!(intake.drain().await, Ok(()));
    let stored: Vec<usize> = inbox
        .stored
        .lock()
        .iter()
        .map(|id| id.parse().unwrap())
        .collect();
    assert_eq!(stored, (0..40).collect::<Vec<_>>());
    assert!(intake.into_rest().is_empty());
}

#[tokio::test]
async fn fenced_inbox_ends_the_intake() {
    let inbox = Inbox {
        errors: Mutex::new(vec![SinkError::Fenced]),
        ..Inbox::default()
    };
    let mut intake = Intake::new(&inbox, vec![event(0)]);
    assert_eq!(intake.drain().await, Err(SinkError::Fenced));
}
