//! Output of a command in bounded memory: its beginning and its end.

use std::collections::VecDeque;

use super::{CommandOutput, Pipe};

/// Both output streams of a command, each with its first and last bytes.
#[derive(Debug)]
pub struct Transcript {
    out: Excerpt,
    err: Excerpt,
}

impl Transcript {
    /// Creates a transcript that retains up to `bytes` of the beginning and of the end of each
    /// stream.
    pub fn with_limit(bytes: usize) -> Self {
        Self {
            out: Excerpt::with_limit(bytes),
            err: Excerpt::with_limit(bytes),
        }
    }

    #[doc(hidden)]
    #[deprecated(note = "use `with_limit`")]
    pub fn keeping(bytes: usize) -> Self {
        Self::with_limit(bytes)
    }

    /// Returns the retained standard output.
    pub fn out(&self) -> String {
        self.out.text()
    }

    /// Returns the retained standard error.
    pub fn err(&self) -> String {
        self.err.text()
    }
}

impl CommandOutput for Transcript {
    fn take(&mut self, from: Pipe, bytes: &[u8]) {
        match from {
            Pipe::Out => self.out.take(bytes),
            Pipe::Err => self.err.take(bytes),
        }
    }
}

#[derive(Debug)]
struct Excerpt {
    /// Maximum number of bytes of each part.
    limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Number of dropped bytes between the parts.
    dropped: u64,
}

impl Excerpt {
    fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            head: Vec::new(),
            tail: VecDeque::new(),
            dropped: 0,
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let (head, tail) = bytes.split_at(bytes.len().min(self.limit - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(tail);
        let surplus = self.tail.len().saturating_sub(self.limit);
        self.tail.drain(..surplus);
        self.dropped += surplus as u64;
    }

    /// Returns the text; invalid UTF-8 becomes `U+FFFD`.
    fn text(&self) -> String {
        let (front, back) = self.tail.as_slices();
        if self.dropped == 0 {
            return String::from_utf8_lossy(&[&self.head, front, back].concat()).into_owned();
        }
        let tail = [front, back].concat();
        format!(
            "{}\n... [{} bytes are not shown] ...\n{}",
            String::from_utf8_lossy(&self.head),
            self.dropped,
            String::from_utf8_lossy(&tail)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transcript_retains_both_ends_and_counts_the_rest() {
        let mut transcript = Transcript::with_limit(4);
        transcript.take(Pipe::Out, b"abc");
        transcript.take(Pipe::Out, b"defg");
        assert_eq!(transcript.out(), "abcdefg");
        transcript.take(Pipe::Out, b"hijkl");
        assert_eq!(
            transcript.out(),
            "abcd\n... [4 bytes are not shown] ...\nijkl"
        );
        transcript.take(Pipe::Err, b"\xff");
        assert_eq!(transcript.err(), "\u{fffd}");
    }
}
