//! What a conversation tells, in the shapes of DeerFlow's own embedded client.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::runtime::runs::RunStatus;

/// What an event tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EventKind {
    /// A piece of a message.
    ///
    /// - text of the model: `{type: "ai", content: <what is new>, id, usage_metadata?, additional_kwargs?}`
    /// - its calls: `{type: "ai", content: "", id, tool_calls: [{name, args, id}]}`
    /// - a result: `{type: "tool", content, name, tool_call_id, id, status, artifact?}`
    MessagesTuple,
    /// The state after a step: `{title, messages, artifacts}`.
    Values,
    /// What a tool or a middleware has to say, as it said it.
    Custom,
    /// The end, once and last: `{usage: {input_tokens, output_tokens, total_tokens}, status, questions?}` of the whole run.
    ///
    /// - `status` is `success` or, of a run that was cancelled, `interrupted`; a run that fails ends with an error instead
    /// - `questions: [{id, value}]` are there when the run waits for a person: [`Client::resume`](super::Client::resume) answers them
    End,
}

/// What a run waits for a person to say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// What its answer is found by where several questions are open.
    pub id: String,
    /// What is asked, as the tool or the middleware asks it.
    pub value: Value,
}

/// A call that waits for a person's leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AskedCall<'a> {
    /// The tool.
    pub name: &'a str,
    /// What it would be called with.
    pub arguments: &'a Value,
    /// Why leave is needed.
    pub reason: Option<&'a str>,
}

impl<'a> AskedCall<'a> {
    fn of(call: &'a Value) -> Self {
        Self {
            name: call["name"].as_str().unwrap_or_default(),
            arguments: &call["args"],
            reason: call["description"].as_str(),
        }
    }
}

impl Question {
    /// The calls that it asks an approval for; [`Approval::read`](crate::tools::approval::Approval::read) says which answers decide.
    /// Nothing where words are wanted.
    pub fn calls(&self) -> Option<Vec<AskedCall<'_>>> {
        Some(
            self.value["action_requests"]
                .as_array()?
                .iter()
                .map(AskedCall::of)
                .collect(),
        )
    }

    /// The reason why the last answer decided nothing, when the question is asked again.
    pub fn error(&self) -> Option<&str> {
        self.value
            .get("error")?
            .as_str()
            .filter(|_| self.value["action_requests"].is_array())
    }

    /// The words of a question that words answer; any other as JSON.
    pub fn text(&self) -> String {
        let words = self.value["question"].as_str().or(self.value.as_str());
        words.map_or_else(|| self.value.to_string(), str::to_owned)
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamEvent {
    /// What it tells of.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// What it tells; [`EventKind`] has the shapes.
    pub data: Value,
}

impl StreamEvent {
    /// The message that a text was added to, and the text.
    pub fn text(&self) -> Option<(&str, &str)> {
        if self.kind != EventKind::MessagesTuple || self.data["type"] != "ai" {
            return None;
        }
        let text = self.data["content"]
            .as_str()
            .filter(|text| !text.is_empty())?;
        Some((self.data["id"].as_str().unwrap_or_default(), text))
    }

    /// What a run waits for that ended with this event; nothing of any other event.
    pub fn questions(&self) -> Vec<Question> {
        if self.kind != EventKind::End {
            return Vec::new();
        }
        serde_json::from_value(self.data["questions"].clone()).unwrap_or_default()
    }

    /// Whether this is the end of a run that was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.kind == EventKind::End && self.data["status"] == json!(RunStatus::Interrupted)
    }
}
