//! Tests of agent streams.

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
