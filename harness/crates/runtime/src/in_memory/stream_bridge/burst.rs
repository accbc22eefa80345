//! Bursts: a viewer whose events follow each other closely pauses for 2 ms and takes them together.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Number of reads that follow each other closely before a viewer pauses.
const CLOSE_READS: u32 = 8;
/// Maximum time between two such reads.
const CLOSE: Duration = Duration::from_millis(1);
/// Duration of a pause.
const PAUSE: Duration = Duration::from_millis(2);
/// Number of events per pause with which a burst goes on: the rate of close reads.
const MIN_EVENTS: u64 = 2;

/// Pauses of one viewer. To wake a viewer and to write to its connection costs more than all else
/// that an event needs, so the events of a burst are taken together. An event that follows a
/// silence is never delayed.
#[derive(Debug)]
pub(super) struct Burst {
    /// Sequence number after the last event of the last read.
    next_seq: u64,
    read_at: Instant,
    close_reads: u32,
    pause: Pause,
    /// Created by the first pause.
    timer: Option<Pin<Box<Sleep>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// The viewer does not pause.
    Absent,
    /// Until the timer fires.
    Running,
    /// The timer has fired since the last read.
    Elapsed,
}

impl Burst {
    /// A viewer that begins at `next_seq`.
    pub(super) fn new(next_seq: u64, now: Instant) -> Self {
        Self {
            next_seq,
            read_at: now,
            close_reads: 0,
            pause: Pause::Absent,
            timer: None,
        }
    }

    /// `true` during a pause.
    pub(super) fn is_paused(&self) -> bool {
        self.pause == Pause::Running
    }

    /// Records that all events before `next_seq` are read, and begins a pause if they belong to a
    /// burst. Returns `true` if a pause has begun.
    pub(super) fn pause_after_read(&mut self, next_seq: u64, now: Instant) -> bool {
        let events = next_seq.saturating_sub(self.next_seq);
        let pause = std::mem::replace(&mut self.pause, Pause::Absent);
        // A wake-up without an event says nothing about the events, unless a pause preceded it.
        if events > 0 || pause == Pause::Elapsed {
            let is_close = match pause {
                Pause::Elapsed => events >= MIN_EVENTS,
                Pause::Absent | Pause::Running => {
                    now.saturating_duration_since(self.read_at) < CLOSE
                }
            };
            self.close_reads = if is_close {
                self.close_reads.saturating_add(1)
            } else {
                0
            };
            (self.next_seq, self.read_at) = (next_seq, now);
        }
        if self.close_reads < CLOSE_READS {
            return false;
        }
        self.pause = Pause::Running;
        let until = now + PAUSE;
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(until),
            None => self.timer = Some(Box::pin(sleep_until(until))),
        }
        true
    }

    /// Ends a pause early. The burst goes on.
    pub(super) fn end_pause(&mut self) {
        self.pause = Pause::Absent;
    }

    /// Returns `Ready` at the end of a pause.
    pub(super) fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_paused() {
            return Poll::Ready(());
        }
        if let Some(timer) = &mut self.timer {
            ready!(timer.as_mut().poll(cx));
        }
        self.pause = Pause::Elapsed;
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_micros(100);

    /// Reads one event per `step` until the first pause, and returns the number of reads.
    fn reads_before_pause(burst: &mut Burst, step: Duration) -> Option<u64> {
        let start = Instant::now();
        (1..=100).find(|read| {
            let now = start + step * u32::try_from(*read).expect("a small number");
            burst.pause_after_read(*read, now)
        })
    }

    #[tokio::test(start_paused = true)]
    async fn only_close_reads_lead_to_a_pause() {
        let burst = || Burst::new(0, Instant::now());
        assert_eq!(
            [STEP, CLOSE, 10 * CLOSE].map(|step| reads_before_pause(&mut burst(), step)),
            [Some(u64::from(CLOSE_READS)), None, None]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn burst_ends_with_a_pause_that_has_few_events() {
        for (events, goes_on) in [(0, false), (1, false), (2, true), (50, true)] {
            let mut burst = Burst::new(0, Instant::now());
            let seq = reads_before_pause(&mut burst, STEP).expect("a pause");
            std::future::poll_fn(|cx| burst.poll_pause(cx)).await;
            let is_paused = burst.pause_after_read(seq + events, Instant::now());
            assert_eq!(is_paused, goes_on, "{events}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn burst_goes_on_after_a_pause_that_was_ended() {
        let mut burst = Burst::new(0, Instant::now());
        let seq = reads_before_pause(&mut burst, STEP).expect("a pause");
        burst.end_pause();
        assert!(burst.pause_after_read(seq, Instant::now()));
    }
}
