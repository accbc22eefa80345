//! Connections of health checks: they are answered on the control runtime, whatever the rest of the process is doing.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;

/// Paths that show how the process does. Their handlers wait for nothing without a limit.
const PATHS: &[&str] = &["/ok", "/health", "/ready", "/metrics"];
/// The most bytes of a request that decide whether it is a probe.
const HEAD_BYTES: usize = 32;

/// Whether the first request of a connection, which stays unread, is a probe. Probes send their request line in one piece.
///
/// # Errors
/// When the client sends nothing for `limit`, or the connection breaks.
pub(crate) async fn begins_with_probe(stream: &TcpStream, limit: Duration) -> io::Result<bool> {
    let mut head = [0; HEAD_BYTES];
    let length = tokio::time::timeout(limit, stream.peek(&mut head)).await??;
    Ok(is_probe(&head[..length]))
}

/// Whether a request line that begins like this asks for one of [`PATHS`].
fn is_probe(head: &[u8]) -> bool {
    let Some(target) = head
        .strip_prefix(b"GET ")
        .or_else(|| head.strip_prefix(b"HEAD "))
    else {
        return false;
    };
    PATHS.iter().any(|path| {
        target
            .strip_prefix(path.as_bytes())
            .is_some_and(|rest| matches!(rest.first(), Some(b' ' | b'?')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_told_by_method_and_path() {
        for (head, expected) in [
            ("GET /ok HTTP/1.1\r\n", true),
            ("HEAD /ready HTTP/1.1", true),
            ("GET /metrics?format=json", true),
            ("GET /health HTTP/1.1", true),
            ("GET /healthy HTTP/1.1", false),
            ("GET /ok", false),
            ("GET /api/threads HTTP/1.1", false),
            ("POST /ok HTTP/1.1", false),
            ("", false),
        ] {
            assert_eq!(is_probe(head.as_bytes()), expected, "{head:?}");
        }
    }
}
