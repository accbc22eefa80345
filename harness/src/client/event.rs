//! Events of the embedded client, in the format of DeerFlow's own embedded client.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::runtime::runs::RunStatus;

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EventKind {
    /// Part of a message.
    ///
    /// - text of the model: `{type: "ai", content: <new text>, id, usage_metadata?,
    ///   additional_kwargs?}`
    /// - its calls: `{type: "ai", content: "", id, tool_calls: [{name, args, id}]}`
    /// - a result: `{type: "tool", content, name, tool_call_id, id, status, artifact?}`
    MessagesTuple,
    /// State after a step: `{title, messages, artifacts}`.
    Values,
    /// Custom event of a tool or a middleware, unchanged.
    Custom,
    /// End of the run, sent once as the last event: `{usage: {input_tokens, output_tokens,
    /// total_tokens}, status, questions?}` for the whole run.
    ///
    /// - `status` is `success`, or `interrupted` for a cancelled run; a failed run ends with an
    ///   error instead
    /// - `questions: [{id, value}]` is present if the run waits for the user:
    ///   [`Client::resume`](super::Client::resume) answers them
    End,
}

/// Interrupt of a run that waits for an answer of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Id that addresses the answer if several interrupts are open.
    pub id: String,
    /// Payload from the tool or the middleware.
    pub value: Value,
}

/// Tool call that waits for approval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ApprovalRequest<'a> {
    /// Name of the tool.
    pub name: &'a str,
    /// Arguments of the call.
    pub arguments: &'a Value,
    /// Reason why approval is required.
    pub reason: Option<&'a str>,
}

impl<'a> ApprovalRequest<'a> {
    fn of(call: &'a Value) -> Self {
        Self {
            name: call["name"].as_str().unwrap_or_default(),
            arguments: &call["args"],
            reason: call["description"].as_str(),
        }
    }
}

impl Question {
    /// Returns the calls that need approval;
    /// [`Approval::read`](crate::tools::approval::Approval::read) defines valid answers. `None` if
    /// a text answer is expected.
    pub fn calls(&self) -> Option<Vec<ApprovalRequest<'_>>> {
        Some(
            self.value["action_requests"]
                .as_array()?
                .iter()
                .map(ApprovalRequest::of)
                .collect(),
        )
    }

    /// Returns the reason why the last answer was invalid, if the interrupt is repeated.
    pub fn error(&self) -> Option<&str> {
        self.value
            .get("error")?
            .as_str()
            .filter(|_| self.value["action_requests"].is_array())
    }

    /// Returns the text of a question; any other payload as JSON.
    pub fn text(&self) -> String {
        let words = self.value["question"].as_str().or(self.value.as_str());
        words.map_or_else(|| self.value.to_string(), str::to_owned)
    }
}

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamEvent {
    /// Kind of the event.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// Payload; [`EventKind`] defines its format.
    pub data: Value,
}

impl StreamEvent {
    /// Returns the id of the message and the new text, if the event adds text to a message.
    pub fn text(&self) -> Option<(&str, &str)> {
        if self.kind != EventKind::MessagesTuple || self.data["type"] != "ai" {
            return None;
        }
        let text = self.data["content"]
            .as_str()
            .filter(|text| !text.is_empty())?;
        Some((self.data["id"].as_str().unwrap_or_default(), text))
    }

    /// Returns the open interrupts of a run that ended with this event; empty for any other event.
    pub fn questions(&self) -> Vec<Question> {
        if self.kind != EventKind::End {
            return Vec::new();
        }
        serde_json::from_value(self.data["questions"].clone()).unwrap_or_default()
    }

    /// `true` for the end of a cancelled run.
    pub fn is_cancelled(&self) -> bool {
        self.kind == EventKind::End && self.data["status"] == json!(RunStatus::Interrupted)
    }
}
