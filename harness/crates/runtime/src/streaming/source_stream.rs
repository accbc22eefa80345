//! Stream of a source whose items are mostly ready: only the steps that wait for more than the next
//! item are futures, each allocated once and not per item.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use futures_util::future::BoxFuture;

/// Source of items.
pub(super) trait Source: Send + Sized + 'static {
    /// Item of the source.
    type Item: Send;

    /// Polls for the next item of what is open; `None` if nothing is open.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Option<Poll<Option<Self::Item>>>;

    /// Waits for the next item while nothing is open.
    fn open_next(self: Box<Self>) -> Opening<Self>;
}

/// Future that returns the source and its next item, or no item at the end.
pub(super) type Opening<S> = BoxFuture<'static, (Box<S>, Option<<S as Source>::Item>)>;

/// Stream of a source.
pub(super) struct SourceStream<S: Source>(SourceState<S>);

enum SourceState<S: Source> {
    Open(Box<S>),
    Opening(Opening<S>),
    Ended,
}

impl<S: Source> SourceStream<S> {
    /// Creates the stream of `source`.
    pub(super) fn new(source: S) -> Self {
        Self(SourceState::Open(Box::new(source)))
    }
}

impl<S: Source> Stream for SourceStream<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let state = &mut self.get_mut().0;
        loop {
            let item = match state {
                SourceState::Open(source) => match source.poll_open(cx) {
                    Some(item) => ready!(item),
                    None => {
                        if let SourceState::Open(source) =
                            std::mem::replace(state, SourceState::Ended)
                        {
                            *state = SourceState::Opening(source.open_next());
                        }
                        continue;
                    }
                },
                SourceState::Opening(opening) => {
                    let (source, item) = ready!(opening.as_mut().poll(cx));
                    *state = SourceState::Open(source);
                    item
                }
                SourceState::Ended => return Poll::Ready(None),
            };
            if item.is_none() {
                *state = SourceState::Ended;
            }
            return Poll::Ready(item);
        }
    }
}
