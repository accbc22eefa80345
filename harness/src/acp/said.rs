//! What an agent says while it works.

use agent_client_protocol::v1::schema::{
    ContentBlock, RequestPermissionOutcome, RequestPermissionRequest, SessionUpdate,
};
use parking_lot::Mutex;

use super::policy::{Refusals, outcome};

/// The longest text that is kept, in bytes. What is shorter and still long goes to a file of the thread elsewhere.
const LONGEST_TEXT: usize = 1 << 20;
/// How much of an unfinished text is told, in bytes.
const LONGEST_REST: usize = 2_000;

/// What is heard of an agent.
#[derive(Debug)]
pub(super) struct Heard {
    /// Whether it gets the permissions that it asks for.
    approves: bool,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    text: String,
    is_cut: bool,
    refusals: Refusals,
}

impl Heard {
    pub(super) fn new(approves: bool) -> Self {
        Self {
            approves,
            kept: Mutex::default(),
        }
    }

    /// Takes the words of an update: those that are meant for the user.
    pub(super) fn take(&self, update: &SessionUpdate) {
        if let SessionUpdate::AgentMessageChunk(chunk) = update
            && let ContentBlock::Text(words) = &chunk.content
        {
            self.kept.lock().add(&words.text);
        }
    }

    /// Answers a question for permission.
    pub(super) fn decide(&self, asked: &RequestPermissionRequest) -> RequestPermissionOutcome {
        let outcome = outcome(&asked.options, self.approves);
        if matches!(outcome, RequestPermissionOutcome::Cancelled) {
            self.kept.lock().refusals.add(asked);
        }
        outcome
    }

    /// All that it said, after the beginning where that is too long.
    pub(super) fn text(&self) -> String {
        let mut kept = self.kept.lock();
        kept.cut(LONGEST_TEXT);
        let cut = if kept.is_cut {
            "[The beginning is left out.]\n"
        } else {
            ""
        };
        format!("{cut}{}", kept.text.trim())
    }

    /// The end of what it said.
    pub(super) fn rest(&self) -> String {
        let mut kept = self.kept.lock();
        kept.cut(LONGEST_REST);
        kept.text.trim().to_owned()
    }

    /// What a model is told of permissions that it did not get.
    pub(super) fn refusals(&self) -> Option<String> {
        self.kept.lock().refusals.note(self.approves)
    }
}

impl Kept {
    fn add(&mut self, words: &str) {
        self.text.push_str(words);
        if self.text.len() > 2 * LONGEST_TEXT {
            self.cut(LONGEST_TEXT);
        }
    }

    /// Keeps so many bytes of the end.
    fn cut(&mut self, bytes: usize) {
        let Some(mut from) = self.text.len().checked_sub(bytes).filter(|from| *from > 0) else {
            return;
        };
        while !self.text.is_char_boundary(from) {
            from += 1;
        }
        self.text.drain(..from);
        self.is_cut = true;
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{ContentChunk, TextContent};

    use super::*;

    fn chunk(text: &str) -> ContentChunk {
        ContentChunk::new(ContentBlock::Text(TextContent::new(text)))
    }

    #[test]
    fn only_words_for_the_user_are_kept_and_of_endless_ones_the_end() {
        let heard = Heard::new(false);
        heard.take(&SessionUpdate::AgentThoughtChunk(chunk("thought")));
        heard.take(&SessionUpdate::AgentMessageChunk(chunk(" one")));
        heard.take(&SessionUpdate::AgentMessageChunk(chunk(", two ")));
        assert_eq!(heard.text(), "one, two");
        for _ in 0..5 {
            heard.take(&SessionUpdate::AgentMessageChunk(chunk(
                &"ü".repeat(LONGEST_TEXT / 2),
            )));
        }
        heard.take(&SessionUpdate::AgentMessageChunk(chunk("the end")));
        let text = heard.text();
        assert!(
            text.starts_with("[The beginning is left out.]\nü")
                && text.ends_with("üthe end")
                && text.len() < LONGEST_TEXT + 100
        );
        assert!(heard.rest().len() <= LONGEST_REST);
    }
}
