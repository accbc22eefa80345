//! Fragments of a text.

use deerflow_core::messages::MessageChunk;

/// Creates a fragment of the message `id` with nothing but a text.
pub(crate) fn text_chunk(id: &str, text: &str) -> MessageChunk {
    MessageChunk {
        content: text.to_owned(),
        ..MessageChunk::empty(id)
    }
}
