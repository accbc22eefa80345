//! State of one run's stream on this node, as viewers may read it.

use std::collections::VecDeque;

use deerflow_core::ids::RunId;
use deerflow_runtime::stream_bridge::{EventId, StreamEvent, TerminalKind};
use tokio::time::Instant;

use super::publisher::Publisher;
use super::run_log::{BATCH_EVENTS, ReadOutcome};
use super::stream_head::StreamHead;

/// Size limit of one batch for a viewer.
const BATCH_BYTES: usize = 64 * 1024;

/// An event, and the time at which it became readable for viewers.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) event: StreamEvent,
    pub(super) at: Instant,
}

impl Entry {
    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + self.event.event.len() + self.event.data.own_len()
    }
}

#[derive(Debug)]
pub(super) struct StreamState {
    pub(super) head: StreamHead,
    /// The newest events, up to the tail of `head`.
    pub(super) entries: VecDeque<Entry>,
    pub(super) bytes: usize,
    /// Present if this node publishes the run.
    pub(super) publisher: Option<Publisher>,
    /// The newest attempt that this node has claimed at the server.
    pub(super) claiming: u32,
    /// Incremented when events that viewers may have seen are revoked.
    pub(super) generation: u32,
    pub(super) changed_at: Instant,
    pub(super) lost_since: Option<Instant>,
    pub(super) lost: bool,
    pub(super) retired: bool,
    /// The durable log was read since the last change.
    pub(super) log_checked: bool,
    /// A read of the durable log is in progress.
    pub(super) reading_log: bool,
    /// There is a durable log, which may have events that the server does not retain.
    pub(super) durable: bool,
}

impl StreamState {
    pub(super) fn new(head: StreamHead, durable: bool) -> Self {
        Self {
            head,
            entries: VecDeque::new(),
            bytes: 0,
            publisher: None,
            claiming: 0,
            generation: 0,
            changed_at: Instant::now(),
            lost_since: None,
            lost: false,
            retired: false,
            log_checked: false,
            reading_log: false,
            durable,
        }
    }

    /// Returns the sequence number of the oldest event in memory, or of the next one if memory is
    /// empty.
    pub(super) fn base(&self) -> u64 {
        self.head.tail + 1 - self.entries.len() as u64
    }

    pub(super) fn push_entry(&mut self, event: StreamEvent, now: Instant) {
        let entry = Entry { event, at: now };
        self.bytes += entry.size();
        self.entries.push_back(entry);
    }

    pub(super) fn drop_oldest(&mut self) {
        if let Some(oldest) = self.entries.pop_front() {
            self.bytes -= oldest.size();
        }
    }

    pub(super) fn drop_newest(&mut self) {
        if let Some(newest) = self.entries.pop_back() {
            self.bytes -= newest.size();
        }
    }

    /// Replaces the head. Events in memory are dropped unless they end at the new tail.
    pub(super) fn adopt(&mut self, head: StreamHead) {
        if self
            .entries
            .back()
            .is_some_and(|newest| newest.event.id != head.newest())
        {
            self.entries.clear();
            self.bytes = 0;
        }
        self.head = head;
        while self.base() < self.head.first && !self.entries.is_empty() {
            self.drop_oldest();
        }
    }

    /// Returns the newest event that viewers may see: it is stored at the server or in the durable
    /// log, or both have been unavailable for a while.
    fn visible_tail(&self) -> u64 {
        match &self.publisher {
            Some(publisher) if !publisher.exposes_unsent() => publisher.stored_up_to(),
            _ => self.head.tail,
        }
    }

    pub(super) fn visible_end(&self) -> Option<TerminalKind> {
        self.head.ended().or_else(|| {
            self.publisher
                .as_ref()
                .filter(|publisher| publisher.exposes_end())?
                .end
        })
    }

    pub(super) fn read(
        &mut self,
        run_id: &RunId,
        next: u64,
        generation: u32,
        last: Option<EventId>,
        batch: &mut VecDeque<Entry>,
    ) -> ReadOutcome {
        if generation != self.generation {
            return ReadOutcome::Abandoned;
        }
        if self.lost || (next < self.head.first && !self.durable) {
            return ReadOutcome::Gap(self.head.gap(run_id, last));
        }
        let visible_tail = self.visible_tail();
        if next > visible_tail {
            // Of a stream that a later attempt continued: this attempt has not reached the
            // position, or never will.
            let beyond = next > self.head.tail + 1
                && last.is_some_and(|last| last.attempt < self.head.newest().attempt);
            return match self.visible_end() {
                _ if beyond => ReadOutcome::Abandoned,
                Some(_) if next > self.head.tail + 1 => ReadOutcome::Abandoned,
                Some(kind) => ReadOutcome::Ended(kind),
                None if self.retired => ReadOutcome::Abandoned,
                None => ReadOutcome::Nothing,
            };
        }
        let Some(skip) = next
            .checked_sub(self.base())
            .and_then(|skip| usize::try_from(skip).ok())
        else {
            return ReadOutcome::Remote(self.head.page());
        };
        let mut bytes = 0;
        for entry in self
            .entries
            .range(skip..)
            .take(BATCH_EVENTS)
            .take_while(|entry| entry.event.id.seq <= visible_tail)
        {
            bytes += entry.event.data.len();
            if bytes > BATCH_BYTES && !batch.is_empty() {
                break;
            }
            batch.push_back(entry.clone());
        }
        ReadOutcome::Events
    }
}
