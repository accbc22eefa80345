//! Lines of a program that may not be what they should.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::faults::Faults;

/// The longest message, in bytes.
pub(crate) const LONGEST_MESSAGE: usize = 8 << 20;

/// A stream of lines that ends when a line gets too long.
pub(crate) struct BoundedLines<R> {
    inner: R,
    since_end: usize,
    faults: Faults,
}

impl<R> BoundedLines<R> {
    pub(crate) fn new(inner: R, faults: Faults) -> Self {
        Self {
            inner,
            since_end: 0,
            faults,
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
        if !self.faults.count(new.len()) {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        self.since_end = match new.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => new.len() - end - 1,
            None => self.since_end + new.len(),
        };
        if self.since_end > LONGEST_MESSAGE {
            self.faults.blame(format!(
                "it sent a message of more than {} MiB",
                LONGEST_MESSAGE >> 20
            ));
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        read
    }
}
