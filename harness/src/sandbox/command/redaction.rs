//! Keeping values that are secret out of what a command prints, also where they arrive in pieces.

use std::fmt;
use std::sync::Arc;

use super::{CommandOutput, Pipe};

/// What stands for a value.
const REDACTED: &[u8] = b"[redacted]";
/// Shorter values are as likely to be words: without them much would become unreadable, and little be kept.
const SHORTEST: usize = 8;

/// Values that nobody is shown.
#[derive(Clone, Default)]
pub struct Secrets(Arc<[Vec<u8>]>);

impl Secrets {
    /// Those of at least 8 bytes.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut values: Vec<Vec<u8>> = values
            .into_iter()
            .filter(|value| value.len() >= SHORTEST)
            .map(|value| value.into())
            .collect();
        // Of two that begin alike the longer one is meant.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values.into())
    }

    /// Moves what can be shown of `pending` to `shown`. What may be the beginning of a value stays, unless nothing more comes.
    fn pass(&self, pending: &mut Vec<u8>, is_end: bool, shown: &mut Vec<u8>) {
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
                    shown.extend_from_slice(REDACTED);
                    at += value.len();
                }
                None => {
                    shown.push(rest[0]);
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

/// Hands on what a command prints, without the values.
#[derive(Debug)]
pub struct Redacting<'a, O: CommandOutput> {
    output: &'a mut O,
    secrets: &'a Secrets,
    out: Vec<u8>,
    err: Vec<u8>,
}

impl<'a, O: CommandOutput> Redacting<'a, O> {
    /// Before an output.
    pub fn new(output: &'a mut O, secrets: &'a Secrets) -> Self {
        Self {
            output,
            secrets,
            out: Vec::new(),
            err: Vec::new(),
        }
    }

    /// Hands on what might have become a value: nothing more comes.
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
        let mut shown = Vec::with_capacity(pending.len());
        self.secrets.pass(pending, is_end, &mut shown);
        self.output.take(from, &shown);
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

    fn shown(secrets: &Secrets, pieces: &[&str]) -> String {
        let mut transcript = Transcript::keeping(1 << 20);
        let mut redacting = Redacting::new(&mut transcript, secrets);
        for piece in pieces {
            redacting.take(Pipe::Err, b"between");
            redacting.take(Pipe::Out, piece.as_bytes());
        }
        redacting.finish();
        transcript.out()
    }

    #[test]
    fn values_are_left_out_wherever_the_pieces_end() {
        let secrets = Secrets::new(["abcabcabd", "abcabcabd-longer", "short", "läng\nlich"]);
        let text = "x abcabcabcabd abcabcabd-longer, abcabcabd-long short läng\nlich abcabca";
        let wanted = "x abc[redacted] [redacted], [redacted]-long short [redacted] abcabca";
        assert_eq!(shown(&secrets, &[text]), wanted);
        let letters: Vec<String> = text.chars().map(String::from).collect();
        assert_eq!(
            shown(
                &secrets,
                &letters.iter().map(String::as_str).collect::<Vec<_>>()
            ),
            wanted
        );
        for at in text.char_indices().map(|(at, _)| at) {
            assert_eq!(shown(&secrets, &[&text[..at], &text[at..]]), wanted, "{at}");
        }
    }

    #[test]
    fn a_value_that_the_middle_of_an_output_is_cut_at_shows_no_half() {
        let secrets = Secrets::new(["0123456789"]);
        let mut transcript = Transcript::keeping(4);
        let mut redacting = Redacting::new(&mut transcript, &secrets);
        redacting.take(Pipe::Out, b"a0123456789b0123456789c");
        redacting.finish();
        assert!(!transcript.out().contains("01"), "{}", transcript.out());
    }
}
