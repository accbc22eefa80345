//! Response body of an event stream: ready events are sent in one chunk, and only the run's end
//! closes the stream normally.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use harness::runtime::stream_bridge::{StreamEvent, StreamItem};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::frame::{Frames, Style};
use super::guard::DisconnectGuard;
use super::opening::OpeningPause;
use crate::observability::metrics::{FirstToken, OpenStream};

/// Maximum size of a chunk, in bytes.
const CHUNK_LIMIT: usize = 64 * 1024;

/// Selection of events. `error` always passes.
#[derive(Debug, Clone, Default)]
pub struct EventFilter(Vec<String>);

impl EventFilter {
    /// Passes only events of these names, without their namespaces; an empty list passes all.
    pub fn only(names: Vec<String>) -> Self {
        Self(names)
    }

    fn passes(&self, event: &StreamEvent) -> bool {
        let name = event.event.split('|').next().unwrap_or_default();
        // `messages` also covers `messages/partial` and its siblings of the accumulated form.
        let base = name.split('/').next().unwrap_or_default();
        self.0.is_empty()
            || name == "error"
            || self
                .0
                .iter()
                .any(|requested| requested == name || requested == base)
    }
}

/// The body of an event stream.
pub struct EventStream {
    items: Option<BoxStream<'static, StreamItem>>,
    frames: Frames,
    filter: EventFilter,
    guard: Option<DisconnectGuard>,
    opening: OpeningPause,
    shutdown: Pin<Box<WaitForCancellationFutureOwned>>,
    /// `true` after a gap was sent: only the run's end may follow.
    gap_sent: bool,
    aborted: Option<&'static str>,
    first_token: FirstToken,
    _open: OpenStream,
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("frames", &self.frames)
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

impl EventStream {
    /// Streams `items` until their end, a gap, an abort, or `shutdown`.
    pub fn new(
        items: BoxStream<'static, StreamItem>,
        style: Style,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            items: Some(items),
            frames: Frames::new(style),
            filter: EventFilter::default(),
            guard: None,
            opening: OpeningPause::default(),
            shutdown: Box::pin(shutdown.cancelled_owned()),
            gap_sent: false,
            aborted: None,
            first_token: FirstToken::since(None),
            _open: OpenStream::new(),
        }
    }

    /// Sets the selection of events.
    #[must_use]
    pub fn filtered(mut self, filter: EventFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Measures the first token from `since`, the time of the request.
    #[must_use]
    pub fn requested_at(mut self, since: Instant) -> Self {
        self.first_token = FirstToken::since(Some(since));
        self
    }

    /// Sets the guard that cancels the run when the client disconnects.
    #[must_use]
    pub fn guarded(mut self, guard: Option<DisconnectGuard>) -> Self {
        self.guard = guard;
        self
    }

    /// Adds a pause after the first event, for a page that must render the new chat first.
    #[must_use]
    pub fn with_opening_pause(mut self) -> Self {
        self.opening = OpeningPause::BeforeFirst;
        self
    }

    fn stop(&mut self, aborted: Option<&'static str>) {
        self.items = None;
        self.aborted = aborted;
        if let Some(guard) = &mut self.guard {
            guard.disarm();
        }
    }

    fn handle(&mut self, item: Option<StreamItem>) {
        match item {
            Some(StreamItem::Event(event)) if self.filter.passes(&event) => {
                self.first_token.observe(&event.event, &event.data);
                self.frames.event(&event);
            }
            Some(StreamItem::Event(_)) => {}
            Some(StreamItem::Heartbeat) => self.frames.heartbeat(),
            Some(StreamItem::Gap(gap)) => {
                self.frames.gap(&gap);
                self.gap_sent = true;
            }
            Some(StreamItem::End(_)) => {
                self.frames.end();
                self.stop(None);
            }
            Some(StreamItem::Aborted) => self.stop(Some(
                "the stream was interrupted; reconnect with Last-Event-ID",
            )),
            None if self.gap_sent => self.stop(None),
            None => self.stop(Some("the stream ended before the run's end")),
        }
    }

    fn fill(&mut self, cx: &mut Context<'_>) {
        if self.opening.is_paused(cx) {
            return;
        }
        let limit = if self.opening.is_first() {
            1
        } else {
            CHUNK_LIMIT
        };
        while self.frames.size() < limit {
            let Some(items) = &mut self.items else { return };
            match items.poll_next_unpin(cx) {
                Poll::Ready(item) => self.handle(item),
                Poll::Pending => return,
            }
        }
    }
}

impl Stream for EventStream {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(guard) = &mut self.guard {
            guard.arm();
        }
        self.fill(cx);
        if let Some(chunk) = self.frames.next_chunk() {
            self.opening.sent();
            return Poll::Ready(Some(Ok(chunk)));
        }
        if self.items.is_some() {
            if self.shutdown.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.stop(Some("the server is shutting down"));
        }
        // An error breaks the connection, so that no client takes it for the run's end.
        Poll::Ready(self.aborted.take().map(|why| Err(io::Error::other(why))))
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
