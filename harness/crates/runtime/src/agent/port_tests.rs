//! Tests of agent streams and of the defaults of an agent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use futures_util::{FutureExt, StreamExt};
use serde_json::json;

use super::*;
use crate::agent::StopKind;

#[tokio::test]
async fn buffered_events_are_delivered_before_the_end() {
    let (sink, events) = EventSink::channel();
    let driver = async move {
        (0..1_000).for_each(|at| sink.emit(AgentEvent::Custom(json!(at))));
        Ok(AgentOutcome {
            kind: StopKind::Completed,
            stop_reason: None,
        })
    };
    let said: Vec<_> = AgentStream::new(events, driver.boxed()).collect().await;
    assert_eq!(said.len(), 1_001);
    assert!(matches!(said.last(), Some(Ok(AgentEvent::Done(_)))));
}

/// Waker that counts its wake-ups.
#[derive(Default)]
struct WakeCount(AtomicUsize);

impl Wake for WakeCount {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn only_events_of_other_tasks_wake_the_run() {
    let (sink, events) = EventSink::channel();
    let other = sink.clone();
    let driver = async move {
        sink.emit(AgentEvent::Custom(json!("own")));
        std::future::pending().await
    };
    let mut stream = AgentStream::new(events, driver.boxed());
    let count = Arc::<WakeCount>::default();
    let waker = Arc::clone(&count).into();
    let mut poll = || {
        let polled = stream.poll_next_unpin(&mut Context::from_waker(&waker));
        match polled {
            Poll::Ready(Some(Ok(AgentEvent::Custom(event)))) => Some(event),
            _ => None,
        }
    };
    assert_eq!((poll(), poll()), (Some(json!("own")), None));
    assert_eq!(count.0.load(Ordering::SeqCst), 0);
    other.emit(AgentEvent::Custom(json!("other")));
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!((poll(), poll()), (Some(json!("other")), None));
}

#[tokio::test]
async fn driver_uses_the_budget_of_the_polling_task() {
    let (_sink, events) = EventSink::channel();
    let driver = async {
        loop {
            tokio::task::consume_budget().await;
        }
    };
    let mut stream = AgentStream::new(events, driver.boxed());
    let has_budget = std::future::poll_fn(|cx| {
        assert!(stream.poll_next_unpin(cx).is_pending());
        Poll::Ready(tokio::task::coop::has_budget_remaining())
    });
    assert!(!has_budget.await);
}

/// Agent whose behaviour is the default one.
#[derive(Debug)]
struct Plain;

impl Agent for Plain {
    fn stream(&self, _input: AgentInput, _ctx: RunContext, events: EventReceiver) -> AgentStream {
        AgentStream::new(events, std::future::pending().boxed())
    }

    fn nodes(&self) -> Vec<String> {
        Vec::new()
    }
}

#[test]
fn newest_partial_message_is_settled_by_default() {
    let partial = vec![Message::ai("old"), Message::ai("new")];
    assert_eq!(Plain.partial_answers(&partial), &partial[1..]);
    let update = Plain.settle_all(&ThreadState::default(), partial.clone());
    assert_eq!(update, StateUpdate::messages([partial[1].clone()]));
    assert!(Plain.partial_answers(&[]).is_empty());
    assert!(
        Plain
            .settle_all(&ThreadState::default(), Vec::new())
            .is_empty()
    );
}

#[test]
fn unknown_input_keys_are_refused_by_default() {
    let input = |value: Value| value.as_object().cloned().unwrap();
    let known = input(json!({ "messages": "hi", "title": "T" }));
    assert_eq!(Plain.read_input(known.clone()), Ok(known));
    let error = Plain.read_input(input(json!({ "a": 1, "b": 2 })));
    assert_eq!(
        error.unwrap_err().to_string(),
        "unknown thread-state field(s): a, b"
    );
}
