//! Ends a stream that its producer left open, by what the store says of the run: for runs that other processes execute.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{self, BoxFuture};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use tokio::time::Instant;

use super::record::RunRecord;
use super::status::RunStatus;
use super::store::RunQueryStore;
use crate::ids::RunId;
use crate::runtime::actor_context::Owner;
use crate::runtime::serialization::error_frame;
use crate::runtime::stream_bridge::{EventId, Gap, Heartbeat, ResumeFrom, StreamEvent, StreamItem, TerminalKind};

/// Nothing came for so long: the store is asked how the run stands. An end is believed when it is found a second time, so that
/// one that is on its way through the bridge comes first.
const SILENCE: Duration = Duration::from_secs(4);

/// How a run ended, if it did.
pub(super) fn terminal_of(record: &RunRecord) -> Option<TerminalKind> {
    match record.status {
        RunStatus::Success => Some(TerminalKind::End),
        RunStatus::Error | RunStatus::Timeout => Some(TerminalKind::Error),
        RunStatus::Interrupted => Some(TerminalKind::Cancel),
        RunStatus::Pending | RunStatus::Starting | RunStatus::Running => None,
    }
}

/// The end of a run whose events are gone after `last`, and a gap before it for who has seen some or waited for them; an active
/// one that nobody here can stream is aborted, so that the client comes back.
pub(super) fn leftover(record: &RunRecord, last: Option<EventId>, gap: bool) -> Vec<StreamItem> {
    let Some(kind) = terminal_of(record) else { return vec![StreamItem::Aborted] };
    let id = EventId { seq: last.map_or(0, |last| last.seq) + 1, attempt: record.attempt };
    let mut items = Vec::new();
    if gap {
        items.push(StreamItem::Gap(Gap::new(&record.run_id, last, id, id)));
    }
    if kind == TerminalKind::Error {
        let data = error_frame(record.error_name(), record.error.as_deref().unwrap_or("the run failed")).data;
        items.push(StreamItem::Event(StreamEvent { id, event: "error".into(), data }));
    }
    items.push(StreamItem::End(kind));
    items
}

/// `items` of a run from a cursor on, and its end should they fall silent after it ended.
pub(super) fn until_stored_end(
    items: BoxStream<'static, StreamItem>,
    from: ResumeFrom,
    run_id: &RunId,
    query: Arc<dyn RunQueryStore>,
) -> BoxStream<'static, StreamItem> {
    until_stored_end_after(future::ready(()).boxed(), items, from, run_id, query)
}

/// The same for a run whose end is told here, unless `left` comes: then only the store may know of it.
pub(super) fn until_stored_end_after(
    left: BoxFuture<'static, ()>,
    items: BoxStream<'static, StreamItem>,
    from: ResumeFrom,
    run_id: &RunId,
    query: Arc<dyn RunQueryStore>,
) -> BoxStream<'static, StreamItem> {
    let watch = Watch { items, run_id: run_id.clone(), query, left, silence: None, last: last_seen(from), ended: false };
    stream::unfold(Some(watch), |watch| async { watch?.next().await }).flat_map(stream::iter).boxed()
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
    run_id: RunId,
    query: Arc<dyn RunQueryStore>,
    left: BoxFuture<'static, ()>,
    /// Absent until the run has left.
    silence: Option<Heartbeat>,
    last: Option<EventId>,
    /// The store said so when it was last asked.
    ended: bool,
}

impl Watch {
    async fn next(mut self) -> Option<(Vec<StreamItem>, Option<Self>)> {
        loop {
            let follows = self.silence.is_none();
            let silence = poll_fn(|cx| self.silence.as_mut().map_or(Poll::Pending, |silence| silence.poll(cx)));
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
                () = silence => match self.query.get(&self.run_id, &Owner::None).await {
                    Ok(Some(run)) => {
                        let ended = terminal_of(&run).is_some();
                        if ended && self.ended {
                            // What its owner said last may never have come through the bridge.
                            return Some((leftover(&run, self.last, true), None));
                        }
                        self.ended = ended;
                    }
                    Ok(None) if self.ended => return Some((vec![StreamItem::Aborted], None)),
                    Ok(None) => self.ended = true,
                    Err(error) => tracing::warn!(run_id = %self.run_id, %error, "a silent run cannot be looked up"),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::recovery::{LOST, ORPHAN_RECOVERED, end_orphan};
    use super::super::tests::{BEAT, as_user, facade, spec, wait_for_tokens};
    use super::*;
    use crate::runtime::stream_bridge::{EventName, StreamKey};
    use bytes::Bytes;

    #[tokio::test(start_paused = true)]
    async fn a_stream_left_open_ends_when_the_store_says_that_the_run_has() {
        as_user(async {
            let facade = facade();
            let parts = facade.parts().clone();
            // Executed by another process: this one knows its row and its stream.
            let run = parts.create.admit(crate::testkit::new_run("left", "t1")).await.unwrap().run;
            let key = StreamKey { run_id: run.run_id.clone(), attempt: run.attempt };
            parts.bridge.publish(&key, EventName::Borrowed("values"), Bytes::from_static(b"{}").into()).await.unwrap();
            let mut stream = facade.join_stream(None, &run.run_id, ResumeFrom::Start, BEAT).await.unwrap();
            assert!(matches!(stream.items.next().await, Some(StreamItem::Event(_))));
            assert_eq!(stream.items.next().await, Some(StreamItem::Heartbeat), "while it is active nothing is made up");
            end_orphan(&run, ORPHAN_RECOVERED, LOST, &parts).await;
            let began = Instant::now();
            let rest: Vec<_> = stream.items.collect().await;
            assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
            let [StreamItem::Gap(gap), StreamItem::Event(error), StreamItem::End(TerminalKind::Error)] = &rest[..] else {
                panic!("{rest:?}")
            };
            assert_eq!(gap.requested_event_id.as_deref(), Some("1-1"));
            assert_eq!((error.id.seq, &*error.event), (2, "error"));
            // Who comes back with a cursor gets nothing but the end.
            let seen = ResumeFrom::After(EventId { seq: 1, attempt: 1 });
            let again = facade.join_stream(None, &run.run_id, seen, BEAT).await.unwrap();
            assert_eq!(again.items.filter(|item| std::future::ready(*item != StreamItem::Heartbeat)).collect::<Vec<_>>().await, rest);
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_viewer_of_a_run_that_another_process_took_and_ended_sees_that_end() {
        for is_noticed_before in [false, true] {
            as_user(async {
                let facade = facade();
                facade.recover().await.unwrap();
                let (run, stream) = facade.create_and_stream(spec("hang"), BEAT).await.unwrap();
                wait_for_tokens(&facade, &run.run_id).await;
                let parts = facade.parts();
                let other = crate::testkit::node("other");
                parts.nodes.register(&other, Duration::from_secs(600)).await.unwrap();
                let taken = parts.create.take_over(&other, parts.clock.now()).await.unwrap().unwrap();
                while is_noticed_before && facade.live_runs() > 0 {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                end_orphan(&taken.run, ORPHAN_RECOVERED, LOST, parts).await;
                let items = tokio::time::timeout(Duration::from_secs(60), stream.items.collect::<Vec<_>>()).await.expect("it ends");
                assert_eq!(items.last(), Some(&StreamItem::End(TerminalKind::Error)), "noticed before: {is_noticed_before}");
            })
            .await;
        }
    }

    #[tokio::test]
    async fn who_comes_back_to_a_run_whose_events_are_gone_gets_a_gap_and_its_end() {
        as_user(async {
            let facade = facade();
            let parts = facade.parts().clone();
            let run = parts.create.admit(crate::testkit::new_run("left", "t1")).await.unwrap().run;
            end_orphan(&run, ORPHAN_RECOVERED, LOST, &parts).await;
            let seen = EventId { seq: 7, attempt: 1 };
            let stream = facade.join_stream(None, &run.run_id, ResumeFrom::After(seen), BEAT).await.unwrap();
            let items: Vec<_> = stream.items.collect().await;
            let [StreamItem::Gap(gap), StreamItem::Event(error), StreamItem::End(TerminalKind::Error)] = &items[..] else {
                panic!("{items:?}")
            };
            assert_eq!((gap.requested_event_id.as_deref(), error.id.seq), (Some("7-1"), 8));
            let stream = facade.join_stream(None, &run.run_id, ResumeFrom::Start, BEAT).await.unwrap();
            let items: Vec<_> = stream.items.collect().await;
            assert!(matches!(items[..], [StreamItem::Event(_), StreamItem::End(TerminalKind::Error)]), "who saw nothing misses nothing");
        })
        .await;
    }

    #[tokio::test]
    async fn recovery_ends_the_stream_of_a_lost_run_where_it_stood() {
        as_user(async {
            let facade = facade();
            let parts = facade.parts().clone();
            let run = parts.create.admit(crate::testkit::new_run("left", "t1")).await.unwrap().run;
            let key = StreamKey { run_id: run.run_id.clone(), attempt: run.attempt };
            parts.bridge.publish(&key, EventName::Borrowed("values"), Bytes::from_static(b"{}").into()).await.unwrap();
            let stream = facade.join_stream(None, &run.run_id, ResumeFrom::Start, BEAT).await.unwrap();
            facade.recover().await.unwrap();
            let items: Vec<_> = stream.items.collect().await;
            let [StreamItem::Event(_), StreamItem::Event(error), StreamItem::End(TerminalKind::Error)] = &items[..] else {
                panic!("{items:?}")
            };
            assert_eq!((error.id.seq, &*error.event), (2, "error"));
        })
        .await;
    }
}
