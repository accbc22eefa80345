//! Chunks of a body whose texts are in memory.

use std::collections::VecDeque;

use axum::body::Bytes;
use bytes::BytesMut;

/// Minimum size of a text that is a chunk of its own, in bytes.
pub const MIN_CHUNK: usize = 16 << 10;
/// Maximum size of a chunk of joined texts, in bytes.
const MAX_JOINED: usize = 64 << 10;

/// Removes and returns the next chunk of a body. Joins consecutive small texts, because each chunk
/// costs a write.
pub fn next_chunk(texts: &mut VecDeque<Bytes>) -> Option<Bytes> {
    let (mut count, mut size) = (0, 0);
    for text in texts.iter() {
        if text.len() >= MIN_CHUNK || size + text.len() > MAX_JOINED {
            break;
        }
        count += 1;
        size += text.len();
    }
    if count < 2 {
        return texts.pop_front();
    }
    let mut chunk = BytesMut::with_capacity(size);
    for text in texts.drain(..count) {
        chunk.extend_from_slice(&text);
    }
    Some(chunk.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sizes of the chunks of texts with these sizes.
    fn chunks(sizes: &[usize]) -> Vec<usize> {
        let texts = sizes.iter().map(|size| Bytes::from(vec![b'x'; *size]));
        let mut texts = texts.collect();
        std::iter::from_fn(|| next_chunk(&mut texts).map(|chunk| chunk.len())).collect()
    }

    #[test]
    fn small_texts_are_joined_and_others_are_chunks() {
        assert!(chunks(&[]).is_empty());
        assert_eq!(chunks(&[1, 2, MIN_CHUNK, 3, 4, 5]), [3, MIN_CHUNK, 12]);
        assert_eq!(
            chunks(&[MAX_JOINED, MAX_JOINED, 1]),
            [MAX_JOINED, MAX_JOINED, 1]
        );
        assert_eq!(chunks(&[10_000; 8]), [60_000, 20_000]);
    }

    #[test]
    fn a_text_that_is_a_chunk_is_not_copied() {
        let text = Bytes::from(vec![b'x'; MIN_CHUNK]);
        let mut texts = [Bytes::from_static(b"x"), text.clone()].into();
        next_chunk(&mut texts);
        let chunk = next_chunk(&mut texts).unwrap();
        assert_eq!(chunk.as_ptr(), text.as_ptr());
    }
}
