//! Connection of a WebSocket whose incoming messages wait for memory when they prove to be large.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::error::ApiError;
use crate::extract::{BODY_LIMIT, BODY_TIMEOUT, SMALL_TEXT};
use crate::guard::body_memory::RequestMemory;

/// Connection that counts the bytes of the message that arrives.
pub(super) struct MeteredSocket<S> {
    socket: S,
    /// `None` if memory is not limited.
    memory: Option<RequestMemory>,
    /// Bytes that arrived since the last message was handled.
    received: usize,
    reservation: Reservation,
}

/// Memory of the message that arrives.
enum Reservation {
    None,
    Waiting(BoxFuture<'static, Result<(), ApiError>>),
    Since(Instant),
}

impl<S> MeteredSocket<S> {
    pub(super) fn new(socket: S, memory: Option<RequestMemory>) -> Self {
        Self {
            socket,
            memory,
            received: 0,
            reservation: Reservation::None,
        }
    }

    /// Releases the memory of a message that was handled. The next one may have arrived in part.
    pub(super) fn message_handled(&mut self) {
        (self.received, self.reservation) = (0, Reservation::None);
        if let Some(memory) = &self.memory {
            memory.release();
        }
    }

    /// Waits for the memory of a large message.
    fn poll_memory(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(memory) = &self.memory else {
            return Poll::Ready(Ok(()));
        };
        loop {
            match &mut self.reservation {
                Reservation::None if self.received <= SMALL_TEXT => return Poll::Ready(Ok(())),
                Reservation::None => {
                    let memory = memory.clone();
                    let reserved = async move { memory.reserve_text(BODY_LIMIT).await };
                    self.reservation = Reservation::Waiting(reserved.boxed());
                }
                Reservation::Waiting(reserved) => {
                    ready!(reserved.as_mut().poll(cx)).map_err(io::Error::other)?;
                    self.reservation = Reservation::Since(Instant::now());
                }
                Reservation::Since(since) => {
                    let is_late = since.elapsed() > BODY_TIMEOUT;
                    return if is_late || memory.is_too_slow(*since, self.received) {
                        Poll::Ready(Err(io::Error::other(ApiError::TooSlow)))
                    } else {
                        Poll::Ready(Ok(()))
                    };
                }
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_memory(cx))?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buffer))?;
        self.received += buffer.filled().len() - before;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[path = "metered_socket_tests.rs"]
mod tests;
