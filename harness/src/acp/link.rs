//! The way to an agent: lines over the streams of its process, each held against what a message may be.

use std::io;

use agent_client_protocol::Lines;
use futures_util::{Sink, Stream, sink, stream};
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use crate::programs::{BoundedLines, Faults, Hidden};

/// How much of a line that is no message is shown, in characters.
const SHOWN: usize = 200;

/// The transport. What ends it is blamed on `faults`.
pub(super) fn link(
    input: ChildStdin,
    output: ChildStdout,
    faults: Faults,
    hidden: Hidden,
) -> Lines<
    impl Sink<String, Error = io::Error> + Send + 'static,
    impl Stream<Item = io::Result<String>> + Send + 'static,
> {
    let outgoing = sink::unfold(input, |mut input, mut line: String| async move {
        line.push('\n');
        input.write_all(line.as_bytes()).await?;
        input.flush().await?;
        Ok(input)
    });
    let reader = Reader::new(output, faults, hidden);
    let incoming = stream::try_unfold(reader, |mut reader| async move {
        Ok(reader.next().await?.map(|line| (line, reader)))
    });
    Lines::new(outgoing, incoming)
}

struct Reader<R> {
    lines: BufReader<BoundedLines<R>>,
    faults: Faults,
    hidden: Hidden,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    fn new(output: R, faults: Faults, hidden: Hidden) -> Self {
        Self {
            lines: BufReader::new(BoundedLines::new(output, faults.clone())),
            faults,
            hidden,
        }
    }

    async fn next(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if self.lines.read_until(b'\n', &mut line).await? == 0 {
                return Ok(None);
            }
            if !self.faults.count_message() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            match message(&line) {
                Some("") => {}
                Some(message) => return Ok(Some(message.to_owned())),
                None => {
                    let shown = self.hidden.out_of(&String::from_utf8_lossy(&line));
                    let shown: String = shown.trim().chars().take(SHOWN).collect();
                    self.faults.blame(format!("it wrote a line to its output that is no message of the protocol ({shown:?})"));
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
        }
    }
}

/// The message that a line is, empty for a blank one; nothing where it is neither.
fn message(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line).ok()?.trim();
    let is_message = text.is_empty()
        || (text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok());
    is_message.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::Allowance;

    #[tokio::test]
    async fn messages_beyond_the_allowance_end_the_link() {
        let faults = Faults::within(Allowance {
            bytes: 1 << 20,
            messages: 2,
        });
        let mut reader = Reader::new(&b"{}\n{}\n{}\n"[..], faults.clone(), Hidden::default());
        for _ in 0..2 {
            assert_eq!(reader.next().await.unwrap().as_deref(), Some("{}"));
        }
        assert!(reader.next().await.is_err());
        assert_eq!(
            faults.reason().as_deref(),
            Some("it sent more than 2 messages that nobody asked for")
        );
    }

    #[test]
    fn only_objects_are_messages() {
        assert_eq!(message(b" {\"a\": 1}\r\n"), Some("{\"a\": 1}"));
        assert_eq!(
            (
                message(b"\r\n"),
                message(b"npm notice\n"),
                message(b"{\"a\"\n")
            ),
            (Some(""), None, None)
        );
        assert_eq!(
            (message(b"[]"), message(b"1"), message(b"{\"a\": \"\xff\"}")),
            (None, None, None)
        );
    }
}
