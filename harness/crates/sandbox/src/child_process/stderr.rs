//! Reads the stderr of a process while it runs, so that the process does not block on a full pipe.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::time::timeout;

use super::health::ConnectionHealth;
use super::redactor::SecretRedactor;

/// Time to wait for remaining output after the process has exited.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

/// Reader of a process's stderr.
pub struct StderrReader {
    pipe: Option<ChildStderr>,
    stderr_tail: StderrTail,
    health: ConnectionHealth,
}

impl StderrReader {
    /// Creates a reader that stores the redacted end of the output in `health`.
    pub fn new(pipe: ChildStderr, redactor: SecretRedactor, health: ConnectionHealth) -> Self {
        Self {
            pipe: Some(pipe),
            stderr_tail: StderrTail {
                redactor,
                ..StderrTail::default()
            },
            health,
        }
    }

    /// Reads the next piece. Returns `false` if the traffic quota is exceeded. Never completes
    /// after the end of the stream.
    pub async fn read_next(&mut self) -> bool {
        match self.next().await {
            Some(within_quota) => within_quota,
            None => std::future::pending().await,
        }
    }

    /// Reads the remaining output of a process that has exited.
    pub async fn drain(&mut self) {
        let remaining_output = async { while self.next().await == Some(true) {} };
        let _late = timeout(DRAIN_TIMEOUT, remaining_output).await;
    }

    async fn next(&mut self) -> Option<bool> {
        let mut buffer = [0; 4 * 1024];
        match self.pipe.as_mut()?.read(&mut buffer).await {
            Ok(length) if length > 0 => Some(self.push(&buffer[..length])),
            _ => {
                self.pipe = None;
                None
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) -> bool {
        self.stderr_tail.push(bytes);
        let within_quota = self.health.count_bytes(bytes.len());
        if within_quota {
            self.health.set_stderr_tail(self.stderr_tail.text());
        }
        within_quota
    }
}

/// Redacted end of a process's stderr.
#[derive(Default)]
struct StderrTail {
    tail: Vec<u8>,
    /// `true` if earlier output was dropped.
    is_cut: bool,
    redactor: SecretRedactor,
}

impl StderrTail {
    /// Maximum length of the text, in bytes.
    const MAX_BYTES: usize = 2 * 1024;

    fn push(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > 4 * Self::MAX_BYTES {
            self.tail.drain(..self.tail.len() - 2 * Self::MAX_BYTES);
            self.is_cut = true;
        }
    }

    fn text(&self) -> String {
        // The tail may begin with the end of a secret.
        let unsafe_bytes = if self.is_cut {
            self.redactor.max_secret_bytes().min(self.tail.len())
        } else {
            0
        };
        let text = self
            .redactor
            .redact(&String::from_utf8_lossy(&self.tail[unsafe_bytes..]));
        let mut from = text.len().saturating_sub(Self::MAX_BYTES);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text[from..].trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_tail_is_bounded_and_redacted() {
        let mut stderr_tail = StderrTail {
            redactor: SecretRedactor::new(["1", "canary", "canary-key"]),
            ..StderrTail::default()
        };
        for _ in 0..10_000 {
            stderr_tail.push("ü1 canary-key ".as_bytes());
        }
        stderr_tail.push(b"the end\n");
        let text = stderr_tail.text();
        assert!(
            text.len() <= StderrTail::MAX_BYTES
                && text.ends_with("*** the end")
                && !text.contains("-key")
        );
    }
}
