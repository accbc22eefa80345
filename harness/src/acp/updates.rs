//! Collects the output of an agent while it runs.

use agent_client_protocol::v1::schema::{
    ContentBlock, RequestPermissionOutcome, RequestPermissionRequest, SessionUpdate,
};
use parking_lot::Mutex;

use super::policy::{DeniedPermissions, outcome};

/// Maximum size of the collected text, in bytes. Long texts below this limit are moved to a file of
/// the thread by the tool output limit.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Maximum size of the text reported after a failure, in bytes.
const MAX_TAIL_BYTES: usize = 2_000;

/// Text and permission requests of one agent session.
#[derive(Debug)]
pub(super) struct AgentOutput {
    /// `true` if permission requests are approved.
    auto_approve: bool,
    state: Mutex<OutputState>,
}

#[derive(Debug, Default)]
struct OutputState {
    text: String,
    is_cut: bool,
    denied: DeniedPermissions,
}

impl AgentOutput {
    pub(super) fn new(auto_approve: bool) -> Self {
        Self {
            auto_approve,
            state: Mutex::default(),
        }
    }

    /// Appends the text of an update if it is part of the answer to the user. Ignores thoughts and
    /// tool calls.
    pub(super) fn handle_update(&self, update: &SessionUpdate) {
        if let SessionUpdate::AgentMessageChunk(chunk) = update
            && let ContentBlock::Text(message) = &chunk.content
        {
            self.state.lock().add(&message.text);
        }
    }

    /// Returns the response to a permission request and counts denials.
    pub(super) fn decide(&self, request: &RequestPermissionRequest) -> RequestPermissionOutcome {
        let outcome = outcome(&request.options, self.auto_approve);
        if matches!(outcome, RequestPermissionOutcome::Cancelled) {
            self.state.lock().denied.add(request);
        }
        outcome
    }

    /// Returns the collected text, without its beginning if that exceeds the limit.
    pub(super) fn text(&self) -> String {
        let mut state = self.state.lock();
        state.cut(MAX_TEXT_BYTES);
        let cut = if state.is_cut {
            "[The beginning is left out.]\n"
        } else {
            ""
        };
        format!("{cut}{}", state.text.trim())
    }

    /// Returns the end of the collected text.
    pub(super) fn tail(&self) -> String {
        let mut state = self.state.lock();
        state.cut(MAX_TAIL_BYTES);
        state.text.trim().to_owned()
    }

    /// Returns the report of denied permissions for the model.
    pub(super) fn denied(&self) -> Option<String> {
        self.state.lock().denied.note(self.auto_approve)
    }
}

impl OutputState {
    fn add(&mut self, message: &str) {
        self.text.push_str(message);
        if self.text.len() > 2 * MAX_TEXT_BYTES {
            self.cut(MAX_TEXT_BYTES);
        }
    }

    /// Truncates the text to its last `bytes` bytes, rounded to a character boundary.
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
    fn output_keeps_answer_text_and_truncates_its_beginning() {
        let output = AgentOutput::new(false);
        output.handle_update(&SessionUpdate::AgentThoughtChunk(chunk("thought")));
        output.handle_update(&SessionUpdate::AgentMessageChunk(chunk(" one")));
        output.handle_update(&SessionUpdate::AgentMessageChunk(chunk(", two ")));
        assert_eq!(output.text(), "one, two");
        for _ in 0..5 {
            output.handle_update(&SessionUpdate::AgentMessageChunk(chunk(
                &"ü".repeat(MAX_TEXT_BYTES / 2),
            )));
        }
        output.handle_update(&SessionUpdate::AgentMessageChunk(chunk("the end")));
        let text = output.text();
        assert!(
            text.starts_with("[The beginning is left out.]\nü")
                && text.ends_with("üthe end")
                && text.len() < MAX_TEXT_BYTES + 100
        );
        assert!(output.tail().len() <= MAX_TAIL_BYTES);
    }
}
