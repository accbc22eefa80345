//! Detection of health check connections, which are served on the control runtime even if the
//! process is busy.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;

/// Paths of health checks. Every wait in their handlers has a timeout.
const PATHS: &[&str] = &["/ok", "/health", "/ready", "/metrics"];
/// Number of bytes that are read to decide if a request is a probe.
const HEAD_BYTES: usize = 32;

/// Reports whether the first request of a connection is a probe, without consuming it. Probes send
/// their request line in one packet.
///
/// # Errors
/// If no byte arrives within `limit`, or the connection breaks.
pub(crate) async fn begins_with_probe(stream: &TcpStream, limit: Duration) -> io::Result<bool> {
    let mut head = [0; HEAD_BYTES];
    let length = tokio::time::timeout(limit, stream.peek(&mut head)).await??;
    Ok(is_probe(&head[..length]))
}

/// `true` if a request with this beginning requests one of [`PATHS`].
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
    fn probes_are_recognised_by_method_and_path() {
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
