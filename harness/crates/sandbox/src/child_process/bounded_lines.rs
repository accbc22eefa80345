//! Reads lines of an untrusted process with limits on their length and on the traffic.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::health::ConnectionHealth;

/// Maximum length of a message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// Stream that fails once a line exceeds [`MAX_MESSAGE_BYTES`] or the traffic exceeds its quota.
pub struct BoundedLines<R> {
    inner: R,
    line_bytes: usize,
    health: ConnectionHealth,
}

impl<R> BoundedLines<R> {
    /// Limits the lines that `inner` yields; a line that is too long is recorded in `health`.
    pub fn new(inner: R, health: ConnectionHealth) -> Self {
        Self {
            inner,
            line_bytes: 0,
            health,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        let new = &buffer.filled()[before..];
        if !self.health.count_bytes(new.len()) {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        self.line_bytes = match new.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => new.len() - end - 1,
            None => self.line_bytes + new.len(),
        };
        if self.line_bytes > MAX_MESSAGE_BYTES {
            self.health.fail(format!(
                "it sent a message of more than {} MiB",
                MAX_MESSAGE_BYTES >> 20
            ));
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        read
    }
}
