//! Splits the output of a command into chunks for viewers, within a total limit. Pure.

use crate::sandbox::{HostNames, MaskedStream, Pipe};

/// Maximum number of characters streamed per command, regardless of the limit of its result.
const MAX_STREAMED_CHARS: usize = 100_000;
/// Minimum buffer capacity per stream, in bytes: masking can shorten the text.
const MIN_BUFFER_BYTES: usize = 64 << 10;
/// Maximum length of an encoded character, in bytes.
const BYTES_PER_CHAR: usize = 4;

/// Output that was printed and not yet emitted, in bounded memory.
#[derive(Debug)]
pub(super) struct OutputChunks {
    out: StreamBuffer,
    err: StreamBuffer,
    max_chars: usize,
    shown_chars: usize,
    is_over: bool,
}

/// Piece of live output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    /// Next text of a stream.
    Next(Pipe, String),
    /// The limit is reached; further output is not streamed.
    Truncated { shown_chars: usize },
}

#[derive(Debug, Default)]
struct StreamBuffer {
    text: MaskedStream,
    /// `true` if output was dropped because the buffer was full.
    is_cut: bool,
}

impl OutputChunks {
    /// Creates a buffer for a command whose result has at most `max_chars` characters (0: no
    /// limit).
    pub(super) fn with_limit(max_chars: usize) -> Self {
        let max_chars = if max_chars == 0 {
            MAX_STREAMED_CHARS
        } else {
            max_chars.min(MAX_STREAMED_CHARS)
        };
        Self {
            out: StreamBuffer::default(),
            err: StreamBuffer::default(),
            max_chars,
            shown_chars: 0,
            is_over: false,
        }
    }

    /// Buffers printed bytes.
    pub(super) fn take(&mut self, from: Pipe, bytes: &[u8]) {
        let max_buffered = MIN_BUFFER_BYTES.max(self.max_chars * BYTES_PER_CHAR);
        let buffer = match from {
            Pipe::Out => &mut self.out,
            Pipe::Err => &mut self.err,
        };
        if self.is_over || buffer.is_cut {
            return;
        }
        let room = max_buffered.saturating_sub(buffer.text.held());
        buffer.is_cut = bytes.len() > room;
        buffer.text.push(&bytes[..bytes.len().min(room)]);
    }

    /// Reports whether no output is waiting to be emitted.
    pub(super) fn is_empty(&self) -> bool {
        let is_empty = |buffer: &StreamBuffer| buffer.text.held() == 0 && !buffer.is_cut;
        self.is_over || (is_empty(&self.out) && is_empty(&self.err))
    }

    /// Returns the chunks that can be emitted now; with `is_end`, all remaining ones.
    pub(super) fn next(&mut self, names: &HostNames, is_end: bool) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        for (pipe, buffer) in [(Pipe::Out, &mut self.out), (Pipe::Err, &mut self.err)] {
            if self.is_over {
                break;
            }
            // If output was dropped, the last characters may be the beginning of a folder name.
            let text = if is_end && !buffer.is_cut {
                buffer.text.finish(names)
            } else {
                buffer.text.pass(names)
            };
            let room = self.max_chars - self.shown_chars;
            let shown = text
                .char_indices()
                .nth(room)
                .map_or(&*text, |(end, _)| &text[..end]);
            self.shown_chars += shown.chars().count();
            self.is_over = buffer.is_cut || shown.len() < text.len();
            if !shown.is_empty() {
                chunks.push(Chunk::Next(pipe, shown.to_owned()));
            }
            if self.is_over {
                chunks.push(Chunk::Truncated {
                    shown_chars: self.shown_chars,
                });
            }
        }
        chunks
    }
}

#[cfg(test)]
#[path = "chunks_tests.rs"]
mod tests;
