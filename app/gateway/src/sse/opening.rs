//! Pause between the first and the second event of a stream, for pages that must render before they
//! receive a message.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// Time for a page to render a new chat. DeerFlow's own gateway takes some 35 ms; on a busy machine
/// 50 ms are too few.
const PAUSE: Duration = Duration::from_millis(200);

/// State of the pause.
///
/// DeerFlow's web UI shows a new question itself until the stream delivers it, which it detects by
/// counting the thread's questions. It begins to count when it learns the thread's id from the
/// headers of the stream, which the UI's proxy holds until the first bytes of the body. If the
/// question is in the same bytes, the first count includes it, the UI waits for another one, and
/// the page shows the question twice.
#[derive(Debug, Default)]
pub(super) enum OpeningPause {
    /// Initial state: the first event will be sent alone.
    BeforeFirst,
    /// The first event was sent.
    Paused(Pin<Box<Sleep>>),
    /// Events are sent without delay.
    #[default]
    Finished,
}

impl OpeningPause {
    /// `true` if the next chunk must hold a single event.
    pub(super) fn is_first(&self) -> bool {
        matches!(self, Self::BeforeFirst)
    }

    /// Begins the pause after the first chunk.
    pub(super) fn sent(&mut self) {
        if self.is_first() {
            *self = Self::Paused(Box::pin(sleep(PAUSE)));
        }
    }

    /// `true` if events must wait. The task is woken at the end of the pause.
    pub(super) fn is_paused(&mut self, cx: &mut Context<'_>) -> bool {
        let Self::Paused(rest) = self else {
            return false;
        };
        if rest.as_mut().poll(cx) == Poll::Pending {
            return true;
        }
        *self = Self::Finished;
        false
    }
}
