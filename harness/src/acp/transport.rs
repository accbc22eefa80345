//! Transport to an agent: one message per line over the standard streams of its process, with
//! limits on each line.

use std::io;

use agent_client_protocol::Lines;
use futures_util::{Sink, Stream, sink, stream};
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use crate::child_process::{BoundedLines, ConnectionHealth, SecretRedactor};

/// Maximum length of an invalid line in an error text, in characters.
const MAX_EXCERPT_CHARS: usize = 200;

/// Builds the transport. If a line is invalid or the traffic exceeds its quota, stores the failure
/// in `health`.
pub(super) fn transport(
    input: ChildStdin,
    output: ChildStdout,
    health: ConnectionHealth,
    redactor: SecretRedactor,
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
    let reader = Reader::new(output, health, redactor);
    let incoming = stream::try_unfold(reader, |mut reader| async move {
        Ok(reader.next().await?.map(|line| (line, reader)))
    });
    Lines::new(outgoing, incoming)
}

struct Reader<R> {
    lines: BufReader<BoundedLines<R>>,
    health: ConnectionHealth,
    redactor: SecretRedactor,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    fn new(output: R, health: ConnectionHealth, redactor: SecretRedactor) -> Self {
        Self {
            lines: BufReader::new(BoundedLines::new(output, health.clone())),
            health,
            redactor,
        }
    }

    async fn next(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if self.lines.read_until(b'\n', &mut line).await? == 0 {
                return Ok(None);
            }
            if !self.health.count_message() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            match message(&line) {
                Some("") => {}
                Some(message) => return Ok(Some(message.to_owned())),
                None => {
                    let excerpt = self.redactor.redact(&String::from_utf8_lossy(&line));
                    let excerpt: String = excerpt.trim().chars().take(MAX_EXCERPT_CHARS).collect();
                    self.health.fail(format!(
                        "it wrote a line to its output that is not a protocol message ({excerpt:?})"
                    ));
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
        }
    }
}

/// Returns the protocol message in a line, `""` for a blank line, or `None` for any other line.
fn message(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line).ok()?.trim();
    let is_message = text.is_empty()
        || (text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok());
    is_message.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child_process::TrafficQuota;

    #[tokio::test]
    async fn messages_beyond_quota_fail_the_transport() {
        let health = ConnectionHealth::with_quota(TrafficQuota {
            bytes: 1 << 20,
            messages: 2,
        });
        let mut reader = Reader::new(
            &b"{}\n{}\n{}\n"[..],
            health.clone(),
            SecretRedactor::default(),
        );
        for _ in 0..2 {
            assert_eq!(reader.next().await.unwrap().as_deref(), Some("{}"));
        }
        assert!(reader.next().await.is_err());
        assert_eq!(
            health.failure().as_deref(),
            Some("it sent more than 2 unsolicited messages")
        );
    }

    #[test]
    fn message_accepts_json_objects_only() {
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
