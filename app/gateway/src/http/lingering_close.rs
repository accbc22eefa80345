//! Lingering close: a socket that continues to read after its last response, while the client still
//! sends a body that was not read.
//!
//! A socket that is closed with unread bytes is reset, and a client that is still writing then
//! loses the response.

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

/// Maximum time of lingering.
pub(crate) const LINGER: Duration = Duration::from_secs(5);
/// Size of a discarded chunk, in bytes.
const CHUNK_SIZE: usize = 16 << 10;

/// Tracks whether the current request's body was read to its end. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnreadBody(Arc<AtomicBool>);

impl UnreadBody {
    /// Wraps the body of the next request.
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
    unread: UnreadBody,
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

/// A socket whose shutdown waits, for a limited time, until the client has sent all of an unread
/// body.
#[derive(Debug)]
pub(crate) struct LingeringSocket<S> {
    socket: S,
    unread: UnreadBody,
    limit: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> LingeringSocket<S> {
    /// Wraps `socket`; it lingers for up to `limit` while a body is `unread`.
    pub(crate) fn new(socket: S, unread: UnreadBody, limit: Duration) -> Self {
        Self {
            socket,
            unread,
            limit,
            deadline: None,
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
        if this.deadline.is_none() {
            ready!(Pin::new(&mut this.socket).poll_shutdown(cx))?;
            if !this.unread.0.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        let limit = this.limit;
        let deadline = this.deadline.get_or_insert_with(|| Box::pin(sleep(limit)));
        let mut chunk = [0; CHUNK_SIZE];
        while deadline.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut chunk);
            let read = ready!(Pin::new(&mut this.socket).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
