//! Ends a stream that its producer left open, by what the store says of the run: for runs that other processes execute.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{self, BoxFuture};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::looks::RunLook;
use super::patience::{AWAY_LIMIT, subscribe_to};
use super::record::RunRecord;
use super::recovery::ROLLED_BACK;
use super::status::RunStatus;
use crate::runtime::serialization::error_frame;
use crate::runtime::stream_bridge::{
    EventId, Gap, Heartbeat, ResumeFrom, ResumeResult, StreamBridge, StreamEvent, StreamItem,
    Subscription, TerminalKind,
};

/// Nothing came for so long: the store is asked how the run stands. An end is believed when it is found a second time, so that
/// one that is on its way through the bridge comes first.
const SILENCE: Duration = Duration::from_secs(2);
/// How old an answer of the store may be for viewers: they fall silent together, and one look serves all of them.
const AGE: Duration = Duration::from_secs(1);

/// How a run ended, if it did.
pub(super) fn terminal_of(record: &RunRecord) -> Option<TerminalKind> {
    match record.status {
        RunStatus::Success => Some(TerminalKind::End),
        RunStatus::Interrupted => Some(TerminalKind::Cancel),
        // It was asked for.
        RunStatus::Error if record.stop_reason.as_deref() == Some(ROLLED_BACK) => {
            Some(TerminalKind::Cancel)
        }
        RunStatus::Error | RunStatus::Timeout => Some(TerminalKind::Error),
        RunStatus::Pending | RunStatus::Starting | RunStatus::Running => None,
    }
}

/// The end of a run whose events are gone after `last`, and a gap before it for who has seen some or waited for them; an active
/// one that nobody here can stream is aborted, so that the client comes back.
pub(super) fn leftover(record: &RunRecord, last: Option<EventId>, gap: bool) -> Vec<StreamItem> {
    let Some(kind) = terminal_of(record) else {
        return vec![StreamItem::Aborted];
    };
    let id = EventId {
        seq: last.map_or(0, |last| last.seq) + 1,
        attempt: record.attempt,
    };
    let mut items = Vec::new();
    if gap {
        items.push(StreamItem::Gap(Gap::new(&record.run_id, last, id, id)));
    }
    if kind == TerminalKind::Error {
        let data = error_frame(
            record.error_name(),
            record.error.as_deref().unwrap_or("the run failed"),
        )
        .data;
        items.push(StreamItem::Event(StreamEvent {
            id,
            event: "error".into(),
            data,
        }));
    }
    items.push(StreamItem::End(kind));
    items
}

/// `items` of a run from a cursor on, and its end should they fall silent after it ended.
pub(super) fn until_stored_end(
    items: BoxStream<'static, StreamItem>,
    from: ResumeFrom,
    look: Arc<RunLook>,
    bridge: Arc<dyn StreamBridge>,
) -> BoxStream<'static, StreamItem> {
    until_stored_end_after(future::ready(()).boxed(), items, from, look, bridge)
}

/// The same for a run whose end is told here, unless `left` comes: then only the store may know of it.
pub(super) fn until_stored_end_after(
    left: BoxFuture<'static, ()>,
    items: BoxStream<'static, StreamItem>,
    from: ResumeFrom,
    look: Arc<RunLook>,
    bridge: Arc<dyn StreamBridge>,
) -> BoxStream<'static, StreamItem> {
    let watch = Watch {
        items,
        from,
        look,
        bridge,
        left,
        silence: None,
        last: last_seen(from),
        ended: false,
        asked_anew: false,
    };
    stream::unfold(Some(watch), |watch| async { watch?.next().await })
        .flat_map(stream::iter)
        .boxed()
}

/// The last event that a viewer has seen.
pub(super) fn last_seen(from: ResumeFrom) -> Option<EventId> {
    match from {
        ResumeFrom::After(id) => Some(id),
        ResumeFrom::Start | ResumeFrom::Tail => None,
    }
}

struct Watch {
    items: BoxStream<'static, StreamItem>,
    from: ResumeFrom,
    look: Arc<RunLook>,
    bridge: Arc<dyn StreamBridge>,
    left: BoxFuture<'static, ()>,
    /// Absent until the run has left.
    silence: Option<Heartbeat>,
    last: Option<EventId>,
    /// The store said so when it was last asked.
    ended: bool,
    /// The bridge was asked again for what comes after `last`.
    asked_anew: bool,
}

impl Watch {
    async fn next(mut self) -> Option<(Vec<StreamItem>, Option<Self>)> {
        loop {
            let follows = self.silence.is_none();
            let silence = poll_fn(|cx| {
                self.silence
                    .as_mut()
                    .map_or(Poll::Pending, |silence| silence.poll(cx))
            });
            tokio::select! {
                biased;
                item = self.items.next() => {
                    let item = item?;
                    if let StreamItem::Event(event) = &item {
                        self.last = Some(event.id);
                        self.ended = false;
                        self.silence.iter_mut().for_each(|silence| silence.put_off(Instant::now()));
                    }
                    return Some((vec![item], Some(self)));
                }
                () = &mut self.left, if follows => self.silence = Heartbeat::every(SILENCE),
                () = silence => match self.look.within(AGE).await {
                    Ok(Some(run)) => {
                        let ended = terminal_of(&run).is_some();
                        if ended && self.ended && !self.begin_anew().await {
                            // What its owner said last may never have come through the bridge.
                            return Some((leftover(&run, self.last, true), None));
                        }
                        self.ended = ended;
                    }
                    Ok(None) if self.ended => return Some((vec![StreamItem::Aborted], None)),
                    Ok(None) => self.ended = true,
                    Err(error) => tracing::warn!(run_id = %self.look.run_id(), %error, "a silent run cannot be looked up"),
                },
            }
        }
    }

    /// Goes on with what the bridge has of an ended run when it is asked, once: its news may only have been slow to come here.
    async fn begin_anew(&mut self) -> bool {
        if std::mem::replace(&mut self.asked_anew, true) {
            return false;
        }
        let from = self.last.map_or(self.from, ResumeFrom::After);
        match subscribe_to(&self.look, from, Duration::ZERO, &*self.bridge).await {
            Ok(Subscription {
                resume: ResumeResult::Ended(_),
                items,
            }) => {
                self.items = items;
                // They are read from a server that may be away just as long.
                self.silence = Heartbeat::every(AWAY_LIMIT);
                true
            }
            Ok(_) => false,
            Err(error) => {
                tracing::warn!(run_id = %self.look.run_id(), %error, "the last events of a run cannot be had");
                false
            }
        }
    }
}

#[cfg(test)]
#[path = "stored_end_tests.rs"]
mod tests;
