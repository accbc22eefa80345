//! The pause between the first event of a stream and the rest, for pages that must render before they see a message.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// Time that a page gets to render a new chat. DeerFlow's own gateway takes some 35 ms; on a busy machine 50 ms are too few.
const PAUSE: Duration = Duration::from_millis(200);

/// State of the pause.
///
/// DeerFlow's web UI shows a new question itself until the stream brings it, and counts the thread's questions to notice that. It
/// starts to count when it learns the thread's id from the headers of the stream, which the proxy of the UI holds back until the
/// first bytes of the body. If the question comes in the same bytes, it is in the first count, the UI waits for one more, and the
/// question stays on the page twice.
#[derive(Debug, Default)]
pub(super) enum Opening {
    /// Nothing was sent: the first event leaves alone.
    First,
    /// The first event was sent.
    Paused(Pin<Box<Sleep>>),
    /// Everything leaves as it comes.
    #[default]
    Over,
}

impl Opening {
    /// Whether the next chunk holds a single event.
    pub(super) fn is_first(&self) -> bool {
        matches!(self, Self::First)
    }

    /// Begins the pause once the first chunk leaves.
    pub(super) fn sent(&mut self) {
        if self.is_first() {
            *self = Self::Paused(Box::pin(sleep(PAUSE)));
        }
    }

    /// Whether events have to wait. The task is woken when they need not any more.
    pub(super) fn holds(&mut self, cx: &mut Context<'_>) -> bool {
        let Self::Paused(rest) = self else {
            return false;
        };
        if rest.as_mut().poll(cx) == Poll::Pending {
            return true;
        }
        *self = Self::Over;
        false
    }
}
