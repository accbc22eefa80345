//! A stream bridge over watch channels, and the tests of the guarantees that it satisfies. Run them
//! with `cargo test -p deerflow-runtime --features testkit --example own_stream_bridge`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use deerflow_core::ids::RunId;
use deerflow_runtime::stream_bridge::{
    BridgeError, EventData, EventId, EventName, ResumeFrom, ResumeResult, StreamBridge,
    StreamEvent, StreamItem, StreamKey, Subscription, TerminalKind,
};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Items of one run, and its newest attempt. Viewers share the items; nothing is removed.
#[derive(Debug, Default)]
struct Run(Vec<StreamItem>, u32);

/// Bridge without limits, heartbeats and cleanup, for runs of one process.
#[derive(Debug, Default)]
struct WatchBridge(Mutex<HashMap<RunId, watch::Sender<Run>>>);

impl WatchBridge {
    /// Appends an item, unless the stream has ended or a later attempt owns it.
    fn push(
        &self,
        key: &StreamKey,
        item: impl FnOnce(EventId) -> StreamItem,
    ) -> Result<EventId, BridgeError> {
        let mut runs = self.0.lock();
        let sender = runs.entry(key.run_id.clone()).or_default();
        let (run_id, attempt) = (key.run_id.clone(), key.attempt);
        let (seq, current) = match &*sender.borrow() {
            Run(items, _) if is_end(items.last()) => return Err(BridgeError::Ended(run_id)),
            Run(items, current) => (items.len() as u64 + 1, *current),
        };
        if attempt < current {
            return Err(BridgeError::Fenced {
                run_id,
                attempt,
                current,
            });
        }
        let id = EventId { seq, attempt };
        sender.send_modify(|Run(items, newest)| {
            items.push(item(id));
            *newest = attempt;
        });
        Ok(id)
    }
}

fn is_end(item: Option<&StreamItem>) -> bool {
    matches!(item, Some(StreamItem::End(_)))
}

#[async_trait]
impl StreamBridge for WatchBridge {
    async fn publish(
        &self,
        key: &StreamKey,
        event: EventName,
        data: EventData,
    ) -> Result<EventId, BridgeError> {
        self.push(key, |id| StreamItem::Event(StreamEvent { id, event, data }))
    }

    async fn publish_terminal(
        &self,
        key: &StreamKey,
        kind: TerminalKind,
        data: Option<Bytes>,
    ) -> Result<(), BridgeError> {
        if let Some(data) = data {
            self.publish(key, "error".into(), data.into()).await?;
        }
        self.push(key, |_| StreamItem::End(kind)).map(drop)
    }

    async fn subscribe(
        &self,
        run_id: &RunId,
        from: ResumeFrom,
        _heartbeat: Duration,
    ) -> Result<Subscription, BridgeError> {
        let Some(run) = self.0.lock().get(run_id).map(watch::Sender::subscribe) else {
            return Ok(Subscription {
                resume: ResumeResult::Unknown,
                items: stream::empty().boxed(),
            });
        };
        let (next, resume) = {
            let Run(items, _) = &*run.borrow();
            let next = match from {
                ResumeFrom::Start => 0,
                ResumeFrom::After(id) => id.seq as usize,
                ResumeFrom::Tail => items.len() - usize::from(is_end(items.last())),
            };
            match items.last() {
                Some(StreamItem::End(kind)) => (next, ResumeResult::Ended(*kind)),
                _ => (next, ResumeResult::From(next as u64 + 1)),
            }
        };
        // The viewer reads the shared items when it is polled, and waits only at their end.
        let items = stream::unfold((run, next), |(mut run, next)| async move {
            let arrived = run.wait_for(|Run(items, _)| items.len() > next || is_end(items.last()));
            let item = arrived.await.ok()?.0.get(next).cloned()?;
            Some((item, (run, next + 1)))
        });
        let items = items.fuse().boxed();
        Ok(Subscription { resume, items })
    }

    async fn cleanup(&self, run_id: &RunId, _delay: Duration) {
        self.0.lock().remove(run_id);
    }

    async fn cancel(&self, run_id: &RunId) {
        let (run_id, attempt) = (run_id.clone(), u32::MAX);
        let key = StreamKey { run_id, attempt };
        _ = self.push(&key, |_| StreamItem::End(TerminalKind::Cancel));
    }

    async fn mark_awaiting_input(&self, _run_id: &RunId) {}

    async fn start(&self) -> Result<(), BridgeError> {
        Ok(())
    }

    async fn close(&self) {
        self.0.lock().clear();
    }
}

fn main() {
    let _bridge: Arc<dyn StreamBridge> = Arc::new(WatchBridge::default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use deerflow_runtime::stream_bridge::StreamLog;
    use deerflow_runtime::testkit::stream_bridge::{StreamBridgeFactory, TestLimits};

    #[derive(Debug)]
    struct Factory;

    #[async_trait]
    impl StreamBridgeFactory for Factory {
        async fn open(&self, _limits: TestLimits) -> Arc<dyn StreamBridge> {
            Arc::new(WatchBridge::default())
        }

        async fn open_with_log(
            &self,
            limits: TestLimits,
            _log: Arc<dyn StreamLog>,
        ) -> Arc<dyn StreamBridge> {
            self.open(limits).await
        }
    }

    // A complete bridge runs all guarantees: `stream_bridge_contract!([#[tokio::test]] Factory)`.
    deerflow_runtime::stream_bridge_contract! { @each [#[tokio::test]] [Factory]
        event_ids_are_consecutive_from_one
        all_viewers_see_the_same_events
        runs_are_isolated
        higher_attempt_continues_numbering
        lower_attempt_is_fenced
        leaving_viewer_does_not_affect_others
        waiting_viewer_is_woken_by_every_change
        resumed_viewer_gets_events_after_cursor
        tail_viewer_gets_only_new_events
        unknown_run_gives_empty_stream
        end_is_delivered_once_and_last
        every_end_kind_reaches_live_and_late_viewers
        error_event_precedes_end
        nothing_is_published_after_the_end
        cancelled_stream_stays_ended
        a_run_that_never_published_can_be_cancelled
        cancelling_an_ended_stream_changes_nothing
        unpolled_viewer_does_not_slow_producer
    }
}
