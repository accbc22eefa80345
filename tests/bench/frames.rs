//! Counts the contents of a stream without parsing it.

use super::provider::TOKEN;

const END: &[u8] = b"event: end";

/// Frames, tokens and bytes of a stream of server-sent events.
#[derive(Debug, Default)]
pub(super) struct FrameCounter {
    pub(super) frames: u64,
    pub(super) tokens: u64,
    /// `true` once `event: end` has arrived.
    pub(super) ended: bool,
    /// Number of letters of [`TOKEN`] at the end of the bytes so far.
    token_letters: usize,
    /// Length of the current line.
    column: usize,
    /// Number of letters of [`END`] at the start of the current line.
    end_letters: usize,
}

impl FrameCounter {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match byte {
                b'\n' => self.end_line(),
                b'\r' => {}
                _ => self.letter(byte),
            }
        }
    }

    fn letter(&mut self, byte: u8) {
        let token = TOKEN.as_bytes();
        if byte == token[self.token_letters] {
            self.token_letters += 1;
            if self.token_letters == token.len() {
                self.tokens += 1;
                self.token_letters = 0;
            }
        } else {
            self.token_letters = usize::from(byte == token[0]);
        }
        if self.end_letters == self.column && END.get(self.column) == Some(&byte) {
            self.end_letters += 1;
        }
        self.column += 1;
    }

    fn end_line(&mut self) {
        self.frames += u64::from(self.column == 0);
        self.ended |= self.column == END.len() && self.end_letters == END.len();
        self.column = 0;
        self.end_letters = 0;
        self.token_letters = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_tokens_are_counted_for_every_byte_split() {
        let wire = b"event: metadata\ndata: {}\n\n: heartbeat\n\nevent: messages\r\ndata: \"ddew dew\"\r\n\r\nevent: ended\n\nevent: end\ndata: null\n\n";
        for size in 1..wire.len() {
            let mut counter = FrameCounter::default();
            for (at, chunk) in wire.chunks(size).enumerate() {
                counter.push(chunk);
                let before_end = (at + 1) * size < wire.len() - 13;
                assert!(!before_end || !counter.ended);
            }
            assert_eq!(
                (counter.frames, counter.tokens, counter.ended),
                (5, 2, true)
            );
        }
    }
}
