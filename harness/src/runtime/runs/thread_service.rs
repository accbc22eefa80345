//! Follows a thread: the events of its runs one after the other, for as long as somebody reads.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::parts::RuntimeParts;
use super::record::RunRecord;
use super::registry::RunRegistry;
use super::status::RunStatus;
use super::store::{RunListQuery, StoreError};
use super::stream_service::watched;
use crate::ids::{RunId, ThreadId};
use crate::runtime::actor_context::Owner;
use crate::runtime::stream_bridge::{
    BridgeError, EventId, Gap, MalformedCursor, ResumeFrom, ResumeResult, StreamEvent, StreamItem,
};

/// The longest that a run goes unnoticed which another process executes.
const LOOK: Duration = Duration::from_secs(2);
/// The place of a run's end: after all of its events.
const DONE: u32 = u32::MAX;
/// How many runs are read at a time, and how many pages are looked through for the first one to show.
const PAGE: usize = 50;
const MOST_PAGES: usize = 20;

/// Identity of an event within its thread, written `{begun}-{place}` with the attempt in the upper half of the place's 64 bits: they
/// rise, for a thread's runs begin in the order of `begun`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadEventId {
    /// When the run was made, in microseconds since 1970.
    pub begun: i64,
    /// The attempt that published the event; 0 where that is not known.
    pub attempt: u32,
    /// The event's place in the run.
    pub seq: u32,
}

impl ThreadEventId {
    const BEFORE_ALL: Self = Self {
        begun: i64::MIN,
        attempt: 0,
        seq: 0,
    };

    fn of(begun: i64, event: EventId) -> Self {
        Self {
            begun,
            attempt: event.attempt,
            seq: u32::try_from(event.seq).unwrap_or(DONE).min(DONE - 1),
        }
    }

    /// The end of the run that began then.
    fn done(begun: i64) -> Self {
        Self {
            begun,
            attempt: u32::MAX,
            seq: DONE,
        }
    }

    /// Where the run that began then goes on for who has seen this.
    fn resume(self, begun: i64) -> ResumeFrom {
        if self.begun != begun || self.seq == 0 {
            return ResumeFrom::Start;
        }
        // An attempt that is not known may have been the first: then what a later one published is shown from its beginning.
        ResumeFrom::After(EventId {
            seq: self.seq.into(),
            attempt: self.attempt.max(1),
        })
    }

    /// Whether the run that began then has something to show to who has seen this.
    fn is_before_end_of(self, begun: i64) -> bool {
        begun > self.begun || (begun == self.begun && self.seq < DONE)
    }
}

impl fmt::Display for ThreadEventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}-{}",
            self.begun,
            (u64::from(self.attempt) << 32) | u64::from(self.seq)
        )
    }
}

/// Where a viewer of a thread begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadCursor {
    /// With whatever comes next.
    #[default]
    Tail,
    /// With the first event that follows this one.
    After(ThreadEventId),
}

impl ThreadCursor {
    /// Everything that is kept.
    pub const START: Self = Self::After(ThreadEventId::BEFORE_ALL);
}

/// Reads a `Last-Event-ID`: `123-4`, `123`, or `-` for the start.
impl FromStr for ThreadCursor {
    type Err = MalformedCursor;

    fn from_str(text: &str) -> Result<Self, MalformedCursor> {
        if text == "-" {
            return Ok(Self::START);
        }
        let (begun, place) = text.split_once('-').unwrap_or((text, "0"));
        let digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let read = || {
            let place: u64 = place.parse().ok()?;
            let (attempt, seq) = (
                u32::try_from(place >> 32).ok()?,
                u32::try_from(place & u64::from(u32::MAX)).ok()?,
            );
            Some(ThreadEventId {
                begun: begun.parse().ok()?,
                attempt,
                seq,
            })
        };
        let id = Some(())
            .filter(|()| digits(begun) && digits(place))
            .and_then(|()| read());
        id.map(Self::After)
            .ok_or_else(|| MalformedCursor(text.chars().take(80).collect()))
    }
}

/// What a viewer of a thread receives.
#[derive(Debug, Clone, PartialEq)]
pub enum ThreadItem {
    /// An event of a run.
    Event(ThreadEventId, StreamEvent),
    /// A run is over.
    RunDone(ThreadEventId, RunId),
    /// Nothing happened for a while.
    Heartbeat,
}

/// The events of a thread. It ends only when the runtime does.
pub(super) async fn follow(
    thread: ThreadId,
    owner: Owner,
    cursor: ThreadCursor,
    heartbeat: Duration,
    registry: &Arc<RunRegistry>,
    parts: &RuntimeParts,
) -> Result<BoxStream<'static, ThreadItem>, StoreError> {
    let launches = registry.launches.subscribe();
    let after = match cursor {
        ThreadCursor::After(id) => id,
        ThreadCursor::Tail => ThreadEventId::BEFORE_ALL,
    };
    let mut viewer = Viewer {
        thread,
        owner,
        after,
        tail: None,
        current: None,
        heartbeat,
        launches,
        registry: registry.clone(),
        parts: parts.clone(),
    };
    if cursor == ThreadCursor::Tail {
        viewer.skip_what_is_over().await?;
    }
    Ok(stream::unfold(viewer, |mut viewer| async move {
        viewer.next().await.map(|item| (item, viewer))
    })
    .boxed())
}

struct Viewer {
    thread: ThreadId,
    owner: Owner,
    /// The last event shown; later runs and events of the same run follow.
    after: ThreadEventId,
    /// The run at work when a viewer came that wants nothing from before.
    tail: Option<RunId>,
    current: Option<Current>,
    heartbeat: Duration,
    launches: Receiver<ThreadId>,
    registry: Arc<RunRegistry>,
    parts: RuntimeParts,
}

/// The run that is shown.
struct Current {
    run: RunRecord,
    items: BoxStream<'static, StreamItem>,
    /// The gap that came last.
    gap: Option<Gap>,
}

impl Viewer {
    async fn skip_what_is_over(&mut self) -> Result<(), StoreError> {
        let query = RunListQuery {
            limit: PAGE,
            ..RunListQuery::default()
        };
        let runs = self
            .parts
            .query
            .list(&self.thread, &query, &self.owner)
            .await?;
        // The newest that is over and has nothing unfinished before it: one that was cancelled while it waited is over before its turn.
        let now = self.parts.clock.now();
        let begun = runs.iter().rev().filter(|run| run.created_at <= now);
        if let Some(over) = begun.take_while(|run| run.status.is_terminal()).last() {
            self.after = ThreadEventId::done(over.created_at.timestamp_micros());
        }
        self.tail = runs
            .into_iter()
            .find(|run| run.status.is_owned())
            .map(|run| run.run_id);
        Ok(())
    }

    async fn next(&mut self) -> Option<ThreadItem> {
        let mut quiet_since = Instant::now();
        loop {
            let Some(current) = &mut self.current else {
                match self.open_next().await {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(BridgeError::Closed) => return None,
                    Err(error) => {
                        tracing::warn!(thread_id = %self.thread, %error, "the next run of a thread cannot be followed yet")
                    }
                }
                if !self.heartbeat.is_zero() && quiet_since.elapsed() >= self.heartbeat {
                    return Some(ThreadItem::Heartbeat);
                }
                self.wait_for_a_launch(quiet_since).await?;
                continue;
            };
            let begun = current.run.created_at.timestamp_micros();
            match current.items.next().await {
                Some(StreamItem::Event(event)) => {
                    self.after = ThreadEventId::of(begun, event.id);
                    return Some(ThreadItem::Event(self.after, event));
                }
                Some(StreamItem::Heartbeat) => return Some(ThreadItem::Heartbeat),
                Some(StreamItem::End(_)) => {
                    let run = current.run.run_id.clone();
                    self.pass_over(begun);
                    return Some(ThreadItem::RunDone(self.after, run));
                }
                Some(StreamItem::Gap(gap)) => current.gap = Some(gap),
                Some(StreamItem::Aborted) => return None,
                None => {
                    let over = self.current.take()?;
                    self.go_on_behind(over)?;
                }
            }
            quiet_since = Instant::now();
        }
    }

    /// The run that began then is done with.
    fn pass_over(&mut self, begun: i64) {
        self.after = ThreadEventId::done(begun);
        self.current = None;
    }

    /// What is gone is gone: what is left of the run is shown from its oldest event on. `None` if it broke off without a gap.
    fn go_on_behind(&mut self, Current { run, gap, .. }: Current) -> Option<()> {
        let oldest = gap?
            .earliest_available_event_id
            .parse::<EventId>()
            .ok()
            .filter(|oldest| oldest.seq > 0);
        let begun = run.created_at.timestamp_micros();
        let before = oldest.map(|EventId { seq, attempt }| {
            ThreadEventId::of(
                begun,
                EventId {
                    seq: seq - 1,
                    attempt,
                },
            )
        });
        match before.filter(|before| *before != self.after) {
            Some(before) => (self.after, self.tail) = (before, None),
            // Nothing is left, or that is gone by now, too.
            None => {
                self.after = ThreadEventId {
                    begun,
                    attempt: 0,
                    seq: 0,
                };
                self.tail = Some(run.run_id);
            }
        }
        Some(())
    }

    /// Begins to show the next run, if it has begun.
    async fn open_next(&mut self) -> Result<bool, BridgeError> {
        loop {
            let next = self
                .next_run()
                .await
                .map_err(|error| BridgeError::Transport(error.to_string()))?;
            let Some(run) = next else { return Ok(false) };
            if let Some(live) = self.registry.live(&run.run_id) {
                live.opened.cancelled().await;
            }
            let begun = run.created_at.timestamp_micros();
            let from = match self.after {
                _ if self.tail.as_ref() == Some(&run.run_id) => ResumeFrom::Tail,
                after => after.resume(begun),
            };
            let found = self
                .parts
                .bridge
                .subscribe(&run.run_id, from, self.heartbeat)
                .await?;
            if found.resume != ResumeResult::Unknown {
                let items = watched(found.items, from, &run.run_id, &self.registry, &self.parts);
                self.current = Some(Current {
                    run,
                    items,
                    gap: None,
                });
                return Ok(true);
            }
            if !run.status.is_terminal() {
                // Executed elsewhere, or about to publish: it is looked for again.
                return Ok(false);
            }
            self.pass_over(begun);
        }
    }

    /// The first run that has begun and is not done with.
    async fn next_run(&mut self) -> Result<Option<RunRecord>, StoreError> {
        let now = self.parts.clock.now();
        let mut first: Option<RunRecord> = None;
        for page in 0..MOST_PAGES {
            let query = RunListQuery {
                limit: PAGE,
                offset: page * PAGE,
                status: None,
            };
            let runs = self
                .parts
                .query
                .list(&self.thread, &query, &self.owner)
                .await?;
            let full = runs.len() == PAGE;
            let is_new = |run: &RunRecord| {
                self.after
                    .is_before_end_of(run.created_at.timestamp_micros())
            };
            let all_new = runs.iter().all(is_new);
            let counts = |run: &RunRecord| {
                is_new(run)
                    && run.created_at <= now
                    && (run.status != RunStatus::Pending || run.cancel.is_none())
            };
            first = runs.into_iter().rfind(counts).or(first);
            if !full || !all_new {
                break;
            }
        }
        // While the oldest has not begun, nothing behind it is shown.
        Ok(first.filter(|run| run.status != RunStatus::Pending))
    }

    /// Waits until a run of the thread begins here, or it is time to look or to say something. `None` when the runtime is gone.
    async fn wait_for_a_launch(&mut self, quiet_since: Instant) -> Option<()> {
        let beat = if self.heartbeat.is_zero() {
            LOOK
        } else {
            self.heartbeat
        };
        let until = (quiet_since + beat).min(Instant::now() + LOOK);
        loop {
            match tokio::time::timeout_at(until, self.launches.recv()).await {
                Ok(Ok(thread)) if thread != self.thread => {}
                Ok(Err(RecvError::Closed)) => return None,
                Ok(Ok(_) | Err(RecvError::Lagged(_))) | Err(_) => return Some(()),
            }
        }
    }
}

#[cfg(test)]
#[path = "thread_service_tests.rs"]
mod tests;
