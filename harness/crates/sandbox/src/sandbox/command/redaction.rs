//! Redacts secret values from a command's output, even if they arrive in several chunks.

use std::fmt;
use std::sync::Arc;

use super::{CommandOutput, Pipe};

/// Replacement of a secret value.
const REDACTED: &[u8] = b"[redacted]";
/// Minimum length of a redacted value. A shorter value may be a common word: redacting it would
/// make much output unreadable and protect little.
const MIN_SECRET_BYTES: usize = 8;

/// Secret values that must not appear in output.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[Vec<u8>]>);

impl Secrets {
    /// Collects the values of at least 8 bytes.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut values: Vec<Vec<u8>> = values
            .into_iter()
            .filter(|value| value.len() >= MIN_SECRET_BYTES)
            .map(|value| value.into())
            .collect();
        // If one value is a prefix of another, the longer one must match first.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values.into())
    }

    /// Moves the safe part of `pending` to `redacted`. A possible beginning of a value stays in
    /// `pending`, unless `is_end` is set.
    fn pass(&self, pending: &mut Vec<u8>, is_end: bool, redacted: &mut Vec<u8>) {
        let mut at = 0;
        while at < pending.len() {
            let rest = &pending[at..];
            let possible = self
                .0
                .iter()
                .find(|value| rest.starts_with(value) || (!is_end && value.starts_with(rest)));
            match possible {
                Some(value) if rest.len() < value.len() => break,
                Some(value) => {
                    redacted.extend_from_slice(REDACTED);
                    at += value.len();
                }
                None => {
                    redacted.push(rest[0]);
                    at += 1;
                }
            }
        }
        pending.drain(..at);
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

/// Passes a command's output on without the secret values.
#[derive(Debug)]
pub struct Redacting<'a, O: CommandOutput> {
    output: &'a mut O,
    secrets: &'a Secrets,
    out: Vec<u8>,
    err: Vec<u8>,
}

impl<'a, O: CommandOutput> Redacting<'a, O> {
    /// Wraps an output.
    pub fn new(output: &'a mut O, secrets: &'a Secrets) -> Self {
        Self {
            output,
            secrets,
            out: Vec::new(),
            err: Vec::new(),
        }
    }

    /// Flushes the buffered bytes that could have been the beginning of a value.
    pub fn finish(mut self) {
        self.pass(Pipe::Out, &[], true);
        self.pass(Pipe::Err, &[], true);
    }

    fn pass(&mut self, from: Pipe, bytes: &[u8], is_end: bool) {
        let pending = match from {
            Pipe::Out => &mut self.out,
            Pipe::Err => &mut self.err,
        };
        pending.extend_from_slice(bytes);
        let mut redacted = Vec::with_capacity(pending.len());
        self.secrets.pass(pending, is_end, &mut redacted);
        self.output.take(from, &redacted);
    }
}

impl<O: CommandOutput> CommandOutput for Redacting<'_, O> {
    fn take(&mut self, from: Pipe, bytes: &[u8]) {
        if self.secrets.0.is_empty() {
            self.output.take(from, bytes);
        } else {
            self.pass(from, bytes, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Transcript;

    fn redacted(secrets: &Secrets, pieces: &[&str]) -> String {
        let mut transcript = Transcript::with_limit(1 << 20);
        let mut redacting = Redacting::new(&mut transcript, secrets);
        for piece in pieces {
            redacting.take(Pipe::Err, b"between");
            redacting.take(Pipe::Out, piece.as_bytes());
        }
        redacting.finish();
        transcript.out()
    }

    #[test]
    fn secrets_are_redacted_for_any_chunking() {
        let secrets = Secrets::new(["abcabcabd", "abcabcabd-longer", "short", "läng\nlich"]);
        let text = "x abcabcabcabd abcabcabd-longer, abcabcabd-long short läng\nlich abcabca";
        let expected = "x abc[redacted] [redacted], [redacted]-long short [redacted] abcabca";
        assert_eq!(redacted(&secrets, &[text]), expected);
        let letters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(
            redacted(
                &secrets,
                &letters.iter().map(String::as_str).collect::<Vec<_>>()
            ),
            expected
        );
        for at in text.char_indices().map(|(at, _)| at) {
            assert_eq!(
                redacted(&secrets, &[&text[..at], &text[at..]]),
                expected,
                "{at}"
            );
        }
    }

    #[test]
    fn truncation_reveals_no_part_of_a_secret() {
        let secrets = Secrets::new(["0123456789"]);
        let mut transcript = Transcript::with_limit(4);
        let mut redacting = Redacting::new(&mut transcript, &secrets);
        redacting.take(Pipe::Out, b"a0123456789b0123456789c");
        redacting.finish();
        assert!(!transcript.out().contains("01"), "{}", transcript.out());
    }
}
