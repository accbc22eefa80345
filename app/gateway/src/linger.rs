//! A socket that reads on for a while after its last answer, when the client still sends a body that nobody wanted.
//!
//! A socket that is closed with unread bytes is reset, and a reset takes the answer from a client that is still writing.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long a connection is read on at most.
pub(crate) const LINGER: Duration = Duration::from_secs(5);
/// How much is read and dropped at a time, in bytes.
const PIECE: usize = 16 << 10;

/// Whether the present request of a connection has a body that was not read to its end. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unread(Arc<AtomicBool>);

impl Unread {
    /// The body of the next request, observed until its end.
    pub(crate) fn observe(&self, body: Incoming) -> ObservedBody {
        self.0.store(!body.is_end_stream(), Ordering::Relaxed);
        ObservedBody {
            body,
            unread: self.clone(),
        }
    }
}

/// A body that records when it was read to its end.
#[derive(Debug)]
pub(crate) struct ObservedBody {
    body: Incoming,
    unread: Unread,
}

impl HttpBody for ObservedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.unread.0.store(false, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A socket whose shutdown waits, for a bounded time, until the client has sent the rest of an unread body.
#[derive(Debug)]
pub(crate) struct LingeringSocket<S> {
    socket: S,
    unread: Unread,
    limit: Duration,
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> LingeringSocket<S> {
    /// `socket`, which lingers for `limit` at most while a body is `unread`.
    pub(crate) fn new(socket: S, unread: Unread, limit: Duration) -> Self {
        Self {
            socket,
            unread,
            limit,
            until: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LingeringSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for LingeringSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.until.is_none() {
            ready!(Pin::new(&mut this.socket).poll_shutdown(cx))?;
            if !this.unread.0.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        let limit = this.limit;
        let until = this.until.get_or_insert_with(|| Box::pin(sleep(limit)));
        let mut piece = [0; PIECE];
        while until.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut piece);
            let read = ready!(Pin::new(&mut this.socket).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
