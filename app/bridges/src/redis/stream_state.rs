//! State of one run's stream on this node, as viewers may read it.

use std::collections::VecDeque;

use deerflow_core::ids::RunId;
use deerflow_runtime::stream_bridge::{EventId, Gap, StreamEvent, TerminalKind};
use tokio::time::Instant;

use super::durable_log_reads::DurableLogReads;
use super::presence::Presence;
use super::publisher::Publisher;
use super::stream_head::StreamHead;

/// Maximum number of events that a viewer takes under one lock.
pub(super) const BATCH_EVENTS: usize = 64;
/// Size limit of one batch for a viewer.
const BATCH_BYTES: usize = 64 * 1024;

/// Outcome of reading after a cursor.
#[derive(Debug)]
pub(super) enum ReadOutcome {
    /// At least one event.
    Events,
    /// The next events are only at the server or in the durable log. The value is the page size to
    /// read.
    Remote(usize),
    /// No event yet.
    Nothing,
    /// All events were read, and the run has ended.
    Ended(TerminalKind),
    /// The next events are no longer stored.
    Gap(Gap),
    /// The publisher is lost, or events that this viewer saw were revoked.
    Abandoned,
}

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
    pub(super) presence: Presence,
    pub(super) durable_log: DurableLogReads,
    /// No more events will come.
    pub(super) retired: bool,
}

impl StreamState {
    pub(super) fn new(head: StreamHead, durable_log: DurableLogReads) -> Self {
        Self {
            head,
            entries: VecDeque::new(),
            bytes: 0,
            publisher: None,
            claiming: 0,
            generation: 0,
            changed_at: Instant::now(),
            presence: Presence::Present,
            durable_log,
            retired: false,
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
        if self.presence == Presence::Lost
            || (next < self.head.first && !self.durable_log.has_log())
        {
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
