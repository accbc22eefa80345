//! What a program complains of, heard while it runs so that it can go on.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::time::timeout;

use super::faults::Faults;

/// How long the last complaints of a process are waited for.
const AFTERMATH: Duration = Duration::from_millis(100);

/// The errors of a process, as far as they were read.
pub(crate) struct Errors {
    pipe: Option<ChildStderr>,
    complaints: Complaints,
    faults: Faults,
}

impl Errors {
    /// Nothing is read yet. What is goes to `faults`, without what is hidden.
    pub(crate) fn new(pipe: ChildStderr, hidden: Hidden, faults: Faults) -> Self {
        Self {
            pipe: Some(pipe),
            complaints: Complaints {
                hidden,
                ..Complaints::default()
            },
            faults,
        }
    }

    /// Takes what comes next; `false` when it is too much. Once there is nothing more to come, this does not return.
    pub(crate) async fn listen(&mut self) -> bool {
        match self.next().await {
            Some(is_fine) => is_fine,
            None => std::future::pending().await,
        }
    }

    /// Takes what is still on its way when its process has ended.
    pub(crate) async fn listen_to_the_end(&mut self) {
        let rest = async { while self.next().await == Some(true) {} };
        let _late = timeout(AFTERMATH, rest).await;
    }

    async fn next(&mut self) -> Option<bool> {
        let mut buffer = [0; 4 * 1024];
        match self.pipe.as_mut()?.read(&mut buffer).await {
            Ok(length) if length > 0 => Some(self.take(&buffer[..length])),
            _ => {
                self.pipe = None;
                None
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> bool {
        self.complaints.take(bytes);
        let is_fine = self.faults.count(bytes.len());
        if is_fine {
            self.faults.complain(self.complaints.text());
        }
        is_fine
    }
}

/// Values that nobody is shown.
#[derive(Clone, Default)]
pub(crate) struct Hidden(Vec<String>);

impl Hidden {
    /// A shorter value is no secret, and would be found everywhere.
    const SHORTEST_SECRET: usize = 6;

    /// These values.
    pub(crate) fn of<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let long = secrets
            .into_iter()
            .filter(|value| value.len() >= Self::SHORTEST_SECRET);
        let mut secrets: Vec<String> = long.map(str::to_owned).collect();
        // One may be a part of another.
        secrets.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    /// A text without them.
    pub(crate) fn out_of(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| {
            text.replace(secret.as_str(), "***")
        })
    }

    fn longest(&self) -> usize {
        self.0.first().map_or(0, String::len)
    }
}

/// The end of what a process writes to its errors, without the secrets it was given.
#[derive(Default)]
struct Complaints {
    tail: Vec<u8>,
    /// Whether something stood before the tail.
    is_cut: bool,
    hidden: Hidden,
}

impl Complaints {
    /// How much is kept, in bytes.
    const KEPT: usize = 2 * 1024;

    fn take(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > 4 * Self::KEPT {
            self.tail.drain(..self.tail.len() - 2 * Self::KEPT);
            self.is_cut = true;
        }
    }

    fn text(&self) -> String {
        // The end of a secret may stand where the tail was cut.
        let unsafe_bytes = if self.is_cut {
            self.hidden.longest().min(self.tail.len())
        } else {
            0
        };
        let text = self
            .hidden
            .out_of(&String::from_utf8_lossy(&self.tail[unsafe_bytes..]));
        let mut from = text.len().saturating_sub(Self::KEPT);
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
    fn complaints_are_short_and_tell_no_secret() {
        let mut complaints = Complaints {
            hidden: Hidden::of(["1", "canary", "canary-key"]),
            ..Complaints::default()
        };
        for _ in 0..10_000 {
            complaints.take("ü1 canary-key ".as_bytes());
        }
        complaints.take(b"the end\n");
        let text = complaints.text();
        assert!(
            text.len() <= Complaints::KEPT
                && text.ends_with("*** the end")
                && !text.contains("-key")
        );
    }
}
