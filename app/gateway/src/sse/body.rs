//! A run's stream as a body: everything that is ready leaves in one chunk, and only a real end looks like one.

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
use super::opening::Opening;
use crate::metrics::{FirstToken, OpenStream};

/// As many bytes are gathered before a chunk leaves, however much more is ready.
const CHUNK_LIMIT: usize = 64 * 1024;

/// Which events a viewer wants. `error` always passes.
#[derive(Debug, Clone, Default)]
pub struct EventFilter(Vec<String>);

impl EventFilter {
    /// Only events of these names, namespaces aside; none means all.
    pub fn only(names: Vec<String>) -> Self {
        Self(names)
    }

    fn passes(&self, event: &StreamEvent) -> bool {
        let name = event.event.split('|').next().unwrap_or_default();
        // `messages` covers the accumulated form's `messages/partial` and its siblings too.
        let base = name.split('/').next().unwrap_or_default();
        self.0.is_empty()
            || name == "error"
            || self.0.iter().any(|wanted| wanted == name || wanted == base)
    }
}

/// The body of an event stream.
pub struct EventStream {
    items: Option<BoxStream<'static, StreamItem>>,
    frames: Frames,
    filter: EventFilter,
    guard: Option<DisconnectGuard>,
    opening: Opening,
    shutdown: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Whether a gap was shown: nothing but the run's end may follow.
    gapped: bool,
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
    /// Follows `items` until their end, a gap, an abort, or `shutdown`.
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
            opening: Opening::default(),
            shutdown: Box::pin(shutdown.cancelled_owned()),
            gapped: false,
            aborted: None,
            first_token: FirstToken::awaited(None),
            _open: OpenStream::new(),
        }
    }

    /// The same stream for a viewer that wants only some events.
    #[must_use]
    pub fn filtered(mut self, filter: EventFilter) -> Self {
        self.filter = filter;
        self
    }

    /// The same stream of a run that was asked for at `since`.
    #[must_use]
    pub fn asked_for(mut self, since: Instant) -> Self {
        self.first_token = FirstToken::awaited(Some(since));
        self
    }

    /// The same stream, whose reader's going away cancels the run.
    #[must_use]
    pub fn guarded(mut self, guard: Option<DisconnectGuard>) -> Self {
        self.guard = guard;
        self
    }

    /// The same stream for a page that renders the new chat after the first event, before it can take more.
    #[must_use]
    pub fn for_a_new_chat(mut self) -> Self {
        self.opening = Opening::First;
        self
    }

    fn stop(&mut self, aborted: Option<&'static str>) {
        self.items = None;
        self.aborted = aborted;
        if let Some(guard) = &mut self.guard {
            guard.disarm();
        }
    }

    fn take(&mut self, item: Option<StreamItem>) {
        match item {
            Some(StreamItem::Event(event)) if self.filter.passes(&event) => {
                self.first_token.see(&event.event, event.data.pieces()[0]);
                self.frames.event(&event);
            }
            Some(StreamItem::Event(_)) => {}
            Some(StreamItem::Heartbeat) => self.frames.heartbeat(),
            Some(StreamItem::Gap(gap)) => {
                self.frames.gap(&gap);
                self.gapped = true;
            }
            Some(StreamItem::End(_)) => {
                self.frames.end();
                self.stop(None);
            }
            Some(StreamItem::Aborted) => {
                self.stop(Some("the stream was cut; come back with Last-Event-ID"))
            }
            None if self.gapped => self.stop(None),
            None => self.stop(Some("the stream broke off before the run's end")),
        }
    }

    fn gather(&mut self, cx: &mut Context<'_>) {
        if self.opening.holds(cx) {
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
                Poll::Ready(item) => self.take(item),
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
        self.gather(cx);
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
