//! Pairs of a message and its metadata, for the `messages-tuple` mode.
//!
//! A run retains its frames for replay, and most of them are fragments of a text, so they share all
//! but the text.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use serde::Serialize;

use super::frames::to_bytes;
use crate::agent::MessageMeta;
use crate::stream_bridge::EventData;
use deerflow_core::messages::MessageChunk;

/// Maximum number of messages whose metadata is cached.
const MAX_CACHED_METAS: usize = 16;
/// Sizes of the first block and of the largest one that frames share, in bytes.
const BLOCK_BYTES: (usize, usize) = (256, 8 << 10);
/// Maximum size of a message that shares a block with others, in bytes.
const MAX_SHARING_BYTES: usize = 1 << 10;
/// JSON of a pair before the text of a fragment.
const FRAGMENT_START: &[u8] = b"[{\"content\":";

/// Encoder of `[message, metadata]`.
#[derive(Debug)]
pub(super) struct MessagePairs {
    /// Metadata of the messages of the current step.
    metas: Vec<CachedMeta>,
    /// Buffer in which a message is serialized before its length is known.
    scratch: Vec<u8>,
    /// Free part of the block that holds the newest frames.
    block: BytesMut,
    next_block_bytes: usize,
}

/// Serialized metadata of a message.
#[derive(Debug)]
struct CachedMeta {
    meta: Arc<MessageMeta>,
    /// JSON of the pair after the message.
    json: Bytes,
    /// JSON of the pair after the text of a fragment, with the id of the message.
    after_text: Option<(String, Bytes)>,
}

/// JSON of a pair after the text of a fragment.
enum AfterText {
    /// No frame has it so far.
    New(Bytes),
    /// Earlier frames have it.
    Shared(Bytes),
}

impl MessagePairs {
    pub(super) fn new() -> Self {
        Self {
            metas: Vec::new(),
            scratch: Vec::new(),
            block: BytesMut::new(),
            next_block_bytes: BLOCK_BYTES.0,
        }
    }

    /// Releases the metadata of the last step.
    pub(super) fn end_step(&mut self) {
        self.metas.clear();
    }

    /// Encodes a message. `described` is the metadata, serialized unless it was before.
    pub(super) fn message(
        &mut self,
        message: &impl Serialize,
        meta: &Arc<MessageMeta>,
        described: &impl Serialize,
    ) -> EventData {
        let tail = self.cached(meta, described).json.clone();
        EventData::with_tail(self.piece(b"[", message), tail)
    }

    /// Encodes a fragment.
    pub(super) fn fragment(
        &mut self,
        chunk: &MessageChunk,
        meta: &Arc<MessageMeta>,
        described: &impl Serialize,
    ) -> EventData {
        let cached = self.cached(meta, described);
        match cached.after_text(chunk) {
            Some(AfterText::Shared(tail)) => {
                let head = self.piece(FRAGMENT_START, &chunk.content);
                EventData::with_tail(head, tail)
            }
            Some(AfterText::New(tail)) => {
                let head = self.piece(FRAGMENT_START, &chunk.content);
                EventData::of_pieces(head, tail)
            }
            None => {
                let tail = cached.json.clone();
                EventData::with_tail(self.piece(b"[", chunk), tail)
            }
        }
    }

    fn cached(&mut self, meta: &Arc<MessageMeta>, described: &impl Serialize) -> &mut CachedMeta {
        let known = self
            .metas
            .iter()
            .position(|cached| Arc::ptr_eq(&cached.meta, meta));
        let at = known.unwrap_or_else(|| {
            if self.metas.len() == MAX_CACHED_METAS {
                self.metas.remove(0);
            }
            self.metas.push(CachedMeta {
                meta: meta.clone(),
                json: Bytes::from([b",", &*to_bytes(described), b"]"].concat()),
                after_text: None,
            });
            self.metas.len() - 1
        });
        &mut self.metas[at]
    }

    /// Encodes `start` and the JSON of `value`.
    fn piece(&mut self, start: &[u8], value: &impl Serialize) -> Bytes {
        self.scratch.clear();
        self.scratch.extend_from_slice(start);
        if let Err(error) = serde_json::to_writer(&mut self.scratch, value) {
            tracing::error!(%error, "cannot serialize a message for the stream");
            self.scratch.truncate(start.len());
            self.scratch.extend_from_slice(b"null");
        }
        self.stored()
    }

    /// Copies the serialized message: to the current block, or to a buffer of its own if it would
    /// use much of the block, because a block stays in memory as long as any part of it.
    fn stored(&mut self) -> Bytes {
        if self.scratch.len() > MAX_SHARING_BYTES {
            return Bytes::copy_from_slice(&self.scratch);
        }
        if self.block.capacity() < self.scratch.len() {
            let bytes = self.next_block_bytes.max(self.scratch.len());
            self.block = BytesMut::with_capacity(bytes);
            self.next_block_bytes = (2 * self.next_block_bytes).min(BLOCK_BYTES.1);
        }
        self.block.extend_from_slice(&self.scratch);
        self.block.split().freeze()
    }
}

impl CachedMeta {
    /// Returns the JSON of the pair after the text, if `chunk` has nothing but a text.
    fn after_text(&mut self, chunk: &MessageChunk) -> Option<AfterText> {
        if !chunk.is_text_only() {
            return None;
        }
        if let Some((id, tail)) = &self.after_text
            && *id == chunk.id
        {
            return Some(AfterText::Shared(tail.clone()));
        }
        let json = to_bytes(&MessageChunk::empty(chunk.id.as_str()));
        let rest = json
            .strip_prefix(&FRAGMENT_START[1..])?
            .strip_prefix(b"\"\"")?;
        let tail = Bytes::from([rest, &*self.json].concat());
        self.after_text = Some((chunk.id.clone(), tail.clone()));
        Some(AfterText::New(tail))
    }
}

#[cfg(test)]
#[path = "message_pairs_tests.rs"]
mod tests;
