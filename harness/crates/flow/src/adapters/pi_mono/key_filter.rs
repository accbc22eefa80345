//! Removal of the key from what a backend answers, because the backend has received it.

use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};

use super::redaction::{MIN_KEY_BYTES, redacted, redacted_value};
use crate::adapter::{AgentTurnResult, DeltaSink, TurnDelta};

/// Returns a result without the key.
pub(super) fn without_key(result: AgentTurnResult, key: &SecretString) -> AgentTurnResult {
    let text = |text: &str| redacted(text, Some(key));
    let value = |value| redacted_value(value, Some(key));
    let delegation = result.delegation_proposal.map(|proposal| {
        let entries = proposal.into_iter();
        entries.map(|(name, entry)| (name, value(entry))).collect()
    });
    AgentTurnResult {
        final_text: text(&result.final_text),
        structured_output: result.structured_output.map(value),
        reasoning_text: result.reasoning_text.as_deref().map(text),
        tool_calls: result.tool_calls.into_iter().map(value).collect(),
        artifacts: result.artifacts.into_iter().map(value).collect(),
        interrupt: result.interrupt.map(value),
        delegation_proposal: delegation,
        ..result
    }
}

/// Sink that passes fragments on without the key, also if the key is divided among them.
pub(super) struct KeyFilter<'s> {
    sink: &'s dyn DeltaSink,
    key: &'s SecretString,
    /// Ends of text and reasoning that may be the beginning of the key.
    held: Mutex<TurnDelta>,
}

impl<'s> KeyFilter<'s> {
    /// Creates a filter.
    pub(super) fn new(sink: &'s dyn DeltaSink, key: &'s SecretString) -> Self {
        Self {
            sink,
            key,
            held: Mutex::default(),
        }
    }

    /// Passes on what is held, at the end of a turn.
    pub(super) fn finish(self) {
        let held = std::mem::take(&mut *self.held.lock());
        self.pass(held);
    }

    fn pass(&self, delta: TurnDelta) {
        if delta != TurnDelta::default() {
            self.sink.delta(delta);
        }
    }

    /// Returns the safe part of what is held and added; the rest stays held.
    fn released(&self, held: &mut String, added: &str) -> String {
        held.push_str(added);
        let text = redacted(held, Some(self.key));
        let safe = text.len() - beginning_of_key(&text, self.key.expose_secret());
        *held = text[safe..].to_owned();
        text[..safe].to_owned()
    }
}

impl DeltaSink for KeyFilter<'_> {
    fn delta(&self, delta: TurnDelta) {
        let released = {
            let held = &mut *self.held.lock();
            TurnDelta {
                text: self.released(&mut held.text, &delta.text),
                reasoning: self.released(&mut held.reasoning, &delta.reasoning),
            }
        };
        self.pass(released);
    }
}

/// Returns the length of the longest end of a text that is a beginning of the key.
fn beginning_of_key(text: &str, key: &str) -> usize {
    if key.len() < MIN_KEY_BYTES {
        return 0;
    }
    let longest = text.len().min(key.len() - 1);
    (1..=longest)
        .rev()
        .find(|length| text.as_bytes().ends_with(&key.as_bytes()[..*length]))
        .filter(|length| text.is_char_boundary(text.len() - length))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::CollectedDeltas;

    fn streamed(parts: &[&str], key: &str) -> String {
        let (sink, key) = (
            CollectedDeltas::default(),
            SecretString::from(key.to_owned()),
        );
        let filter = KeyFilter::new(&sink, &key);
        for part in parts {
            filter.delta(TurnDelta {
                text: (*part).to_owned(),
                reasoning: String::new(),
            });
        }
        filter.finish();
        sink.text()
    }

    #[test]
    fn divided_key_is_replaced_in_a_stream() {
        let expected = "a [redacted] b";
        assert_eq!(streamed(&["a sk-1234 b"], "sk-1234"), expected);
        assert_eq!(streamed(&["a s", "k-", "123", "4 b"], "sk-1234"), expected);
        assert_eq!(streamed(&["a ", "sk-12", "ä"], "sk-1234"), "a sk-12ä");
        assert_eq!(streamed(&["ends with sk-"], "sk-1234"), "ends with sk-");
        assert_eq!(streamed(&["äöü", "ü"], "üxyz"), "äöüü");
    }
}
