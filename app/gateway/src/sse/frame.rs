//! Bytes of SSE frames: `event`, `data`, `id`, an empty line.

use std::collections::VecDeque;
use std::fmt::{Display, Write as _};

use bytes::{Bytes, BytesMut};
use harness::runtime::stream_bridge::{EventData, Gap, StreamEvent};

use crate::dialect::Dialect;
use crate::responses::{MIN_CHUNK, next_chunk};

/// Size of an event's data, in bytes, from which its pieces are copied only when they are sent.
const LARGE_DATA: usize = 1 << 20;
/// Minimum size of such a piece, in bytes. A smaller copy uses less memory than a piece.
const MIN_PIECE: usize = 512;

/// Room for the rest of a frame besides its name and its data: names of the fields, line ends and
/// the id.
const FIELD_BYTES: usize = 64;

/// Format of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Dialect, which sets the line ends.
    pub dialect: Dialect,
    /// `true` if events carry their id, so that a client can resume.
    pub ids: bool,
}

/// Pending frames. Small ones are collected in one buffer; large data is shared with all other
/// viewers of the run.
#[derive(Debug)]
pub struct Frames {
    style: Style,
    buffer: BytesMut,
    ready: VecDeque<Bytes>,
    size: usize,
}

impl Frames {
    /// An empty list.
    pub fn new(style: Style) -> Self {
        Self {
            style,
            buffer: BytesMut::new(),
            ready: VecDeque::new(),
            size: 0,
        }
    }

    /// Number of pending bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the next chunk of the body.
    pub fn next_chunk(&mut self) -> Option<Bytes> {
        if self.ready.is_empty() && !self.buffer.is_empty() {
            self.end_buffer();
        }
        let chunk = next_chunk(&mut self.ready)?;
        self.size -= chunk.len();
        Some(chunk)
    }

    /// Adds an event of a run.
    pub fn event(&mut self, event: &StreamEvent) {
        let id = self.style.ids.then_some(event.id);
        self.frame(&event.event, &event.data, id);
    }

    /// Adds an event under another id than its run's.
    pub fn named(&mut self, event: &str, data: &EventData, id: impl Display) {
        self.frame(event, data, Some(id));
    }

    /// Adds an event of a thread's log, whose id is its position.
    pub(crate) fn logged(&mut self, event: &str, data: &Bytes, position: u64) {
        self.frame(event, &data.clone().into(), Some(position));
    }

    /// Adds a gap of a replay; at most the run's end follows it.
    pub fn gap(&mut self, gap: &Gap) {
        let data = serde_json::to_vec(gap)
            .map(Bytes::from)
            .unwrap_or_else(|_| Bytes::from_static(b"null"));
        self.frame("gap", &data.into(), None::<u64>);
    }

    /// Adds the run's end.
    pub fn end(&mut self) {
        self.frame("end", &Bytes::from_static(b"null").into(), None::<u64>);
    }

    /// Adds a comment that keeps the connection alive.
    pub fn heartbeat(&mut self) {
        let end = self.style.dialect.line_end();
        self.put(": heartbeat");
        self.put(end);
        self.put(end);
    }

    fn frame(&mut self, event: &str, data: &EventData, id: Option<impl Display>) {
        let end = self.style.dialect.line_end();
        if data.len() < MIN_CHUNK {
            self.buffer.reserve(event.len() + data.len() + FIELD_BYTES);
        }
        for piece in ["event: ", event, end, "data: "] {
            self.put(piece);
        }
        let min_shared = match data.len() {
            0..LARGE_DATA => MIN_CHUNK,
            _ => MIN_PIECE,
        };
        for piece in data.pieces() {
            self.data(piece, min_shared);
        }
        self.put(end);
        if let Some(id) = id {
            self.put("id: ");
            let before = self.buffer.len();
            if let Err(error) = write!(self.buffer, "{id}") {
                tracing::error!(%error, "cannot write the id of an event");
            }
            self.size += self.buffer.len() - before;
            self.put(end);
        }
        self.put(end);
    }

    fn put(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
        self.size += text.len();
    }

    fn data(&mut self, data: &Bytes, min_shared: usize) {
        self.size += data.len();
        if data.len() < min_shared {
            self.buffer.extend_from_slice(data);
            return;
        }
        if !self.buffer.is_empty() {
            self.end_buffer();
        }
        self.ready.push_back(data.clone());
    }

    /// Moves the collected bytes to the chunks. The buffer is not used again, so that a viewer that
    /// waits for an event needs no memory for it.
    fn end_buffer(&mut self) {
        let collected = std::mem::take(&mut self.buffer);
        self.ready.push_back(collected.freeze());
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
