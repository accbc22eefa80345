//! Splits a byte stream into the payloads of its events: server-sent events or lines. Pure: any
//! split of the bytes gives the same payloads.

/// Maximum size of an event, in bytes. Far above the size of real events.
pub(crate) const MAX_EVENT_BYTES: usize = 8 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Error: an event exceeds `MAX_EVENT_BYTES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLong;

/// Collects lines and events. Reads only `data` fields and skips comments and other fields.
#[derive(Debug, Default)]
pub struct EventSplitter {
    /// `true` if each line is a payload, as in NDJSON. Comments are skipped here too, because
    /// proxies insert them.
    bare_lines: bool,
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_carriage_return: bool,
    past_first_line: bool,
}

impl EventSplitter {
    /// Creates a splitter for a stream in which each line is a payload.
    pub fn lines() -> Self {
        Self {
            bare_lines: true,
            ..Self::default()
        }
    }

    /// Adds bytes and passes every complete payload to `sink`, which may stop with an error.
    pub fn push<E: From<EventTooLong>>(
        &mut self,
        mut bytes: &[u8],
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_carriage_return) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.append(bytes)?;
                break;
            };
            self.append(&bytes[..end])?;
            self.after_carriage_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line(&mut sink)?;
        }
        Ok(())
    }

    /// Returns the payload of the last event if the stream ended before the line end that completes
    /// it.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        if self.bare_lines {
            return Some(std::mem::take(&mut self.line))
                .filter(|line| !line.is_empty() && !line.starts_with(b":"));
        }
        let mut rest = None;
        let line: Result<(), EventTooLong> = self.end_line(&mut |_: &[u8]| Ok(()));
        if line.is_ok() && self.has_data {
            rest = Some(std::mem::take(&mut self.data));
        }
        rest
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        if self.line.len() + self.data.len() + bytes.len() > MAX_EVENT_BYTES {
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line<E>(&mut self, sink: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut line = self.line.as_slice();
        if !std::mem::replace(&mut self.past_first_line, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if self.bare_lines {
            let outcome = if line.is_empty() || line.starts_with(b":") {
                Ok(())
            } else {
                sink(line)
            };
            self.line.clear();
            return outcome;
        }
        if line.is_empty() {
            let outcome = if std::mem::take(&mut self.has_data) {
                sink(&self.data)
            } else {
                Ok(())
            };
            self.data.clear();
            self.line.clear();
            return outcome;
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data
                .extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            self.has_data = true;
        }
        self.line.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(pieces: &[&[u8]]) -> Vec<String> {
        let mut splitter = EventSplitter::default();
        let mut events = Vec::new();
        for piece in pieces {
            let pushed: Result<(), EventTooLong> = splitter.push(piece, |data| {
                events.push(String::from_utf8_lossy(data).into_owned());
                Ok(())
            });
            pushed.unwrap();
        }
        events.extend(
            splitter
                .rest()
                .map(|rest| format!("rest {}", String::from_utf8_lossy(&rest))),
        );
        events
    }

    const SAMPLE: &str = "\u{feff}data: a\n\n: note\r\ndata:b\r\ndata: c\r\n\r\nevent: x\rid: 1\rdata: d\r\r\n\ndata: ü";

    #[test]
    fn payloads_are_split_at_every_kind_of_line_end() {
        assert_eq!(cut(&[SAMPLE.as_bytes()]), ["a", "b\nc", "d", "rest ü"]);
    }

    #[test]
    fn lines_splitter_returns_each_line() {
        let mut splitter = EventSplitter::lines();
        let mut lines = Vec::new();
        for piece in ["{1", "}\r\n\n: ping\n{2}\nda", "ta: x"] {
            let pushed: Result<(), EventTooLong> = splitter.push(piece.as_bytes(), |line| {
                lines.push(String::from_utf8_lossy(line).into_owned());
                Ok(())
            });
            pushed.unwrap();
        }
        assert_eq!(
            (lines, splitter.rest()),
            (
                vec!["{1}".to_owned(), "{2}".to_owned()],
                Some(b"data: x".to_vec())
            )
        );
    }

    #[test]
    fn oversized_line_is_rejected() {
        let mut splitter = EventSplitter::default();
        let block = vec![b'x'; 1 << 20];
        let outcomes: Vec<Result<(), EventTooLong>> =
            (0..9).map(|_| splitter.push(&block, |_| Ok(()))).collect();
        assert_eq!(
            outcomes.iter().filter(|outcome| outcome.is_err()).count(),
            1
        );
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_payloads(at in 0..=SAMPLE.len(), then in 0..=SAMPLE.len()) {
            let (a, b) = (at.min(then), at.max(then));
            let bytes = SAMPLE.as_bytes();
            prop_assert_eq!(cut(&[&bytes[..a], &bytes[a..b], &bytes[b..]]), cut(&[bytes]));
        }
    }
}
