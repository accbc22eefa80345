//! Incremental masking of host paths in a stream. The concatenated output equals the masked whole.

use super::masking::HostNames;

/// Bytes that were received and not yet emitted.
#[derive(Debug, Default)]
pub struct MaskedStream {
    buffered: Vec<u8>,
}

impl MaskedStream {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffered.extend_from_slice(bytes);
    }

    /// Number of buffered bytes.
    pub fn held(&self) -> usize {
        self.buffered.len()
    }

    /// Emits, masked, the longest prefix whose masking cannot change with further input. Invalid
    /// UTF-8 becomes `U+FFFD`.
    pub fn pass(&mut self, names: &HostNames) -> String {
        let whole = self.buffered.len() - incomplete_character_bytes(&self.buffered);
        let text = String::from_utf8_lossy(&self.buffered[..whole]).into_owned();
        let cut = last_split(&text, names);
        let rest = self.buffered.split_off(whole);
        self.buffered = [&text.as_bytes()[cut..], &rest].concat();
        names.mask(&text[..cut])
    }

    /// Emits the remaining bytes at the end of the stream.
    pub fn finish(&mut self, names: &HostNames) -> String {
        names.mask(&String::from_utf8_lossy(&std::mem::take(
            &mut self.buffered,
        )))
    }
}

/// Number of bytes at the end that may be an incomplete UTF-8 character.
fn incomplete_character_bytes(bytes: &[u8]) -> usize {
    let Some(last) = bytes.utf8_chunks().last() else {
        return 0;
    };
    let invalid = last.invalid();
    // Invalid bytes cannot be completed by further input.
    let is_incomplete = !invalid.is_empty()
        && matches!(std::str::from_utf8(invalid), Err(error) if error.error_len().is_none());
    if is_incomplete { invalid.len() } else { 0 }
}

/// Last position where the text can be split; 0 if there is none.
fn last_split(text: &str, names: &HostNames) -> usize {
    let mut after = None;
    for (at, before) in text.char_indices().rev() {
        if names.can_split_at(before, after) {
            return at + before.len_utf8();
        }
        after = Some(before);
    }
    0
}

#[cfg(test)]
#[path = "masked_stream_tests.rs"]
mod tests;
