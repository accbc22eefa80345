//! Model that makes the attacker's calls and records the requests it receives.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use deerflow_harness::messages::{MessageChunk, ToolCallChunk};
use deerflow_harness::models::{ChatModel, ModelError, ModelInfo, ModelRequest, ModelStream};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;

use super::attempt::{Attempt, Case};

/// Prefix of a subagent's number in its task.
pub(super) const SUBAGENT: &str = "SUB-";

/// Model that makes the calls of a case, then answers with one word.
#[derive(Debug)]
pub(super) struct HijackedModel {
    info: ModelInfo,
    lead: Mutex<VecDeque<Vec<Attempt>>>,
    subagents: Vec<Mutex<VecDeque<Vec<Attempt>>>>,
    made: Mutex<Vec<MadeCall>>,
    shown: Mutex<Vec<String>>,
}

/// Call that the model made.
#[derive(Debug, Clone)]
pub(super) struct MadeCall {
    pub(super) attempt: Attempt,
    pub(super) by_subagent: bool,
}

impl HijackedModel {
    pub(super) fn of(case: &Case) -> Arc<Self> {
        let name = || "hijacked".to_owned();
        let info = ModelInfo {
            name: name(),
            model: name(),
            provider: name(),
            supports_vision: true,
        };
        let subagents = case
            .subagents
            .iter()
            .map(|answers| Mutex::new(answers.iter().cloned().collect()))
            .collect();
        Arc::new(Self {
            info,
            lead: Mutex::new(case.lead.iter().cloned().collect()),
            subagents,
            made: Mutex::default(),
            shown: Mutex::default(),
        })
    }

    pub(super) fn made(&self) -> Vec<MadeCall> {
        self.made.lock().clone()
    }

    /// Reports whether a request to the model contained this text.
    pub(super) fn was_shown(&self, text: &str) -> bool {
        self.shown.lock().iter().any(|shown| shown.contains(text))
    }

    /// Returns the number of the calling subagent, if the caller is one.
    fn subagent(request: &ModelRequest) -> Option<usize> {
        let task = request
            .messages
            .iter()
            .find(|message| message.is_human())?
            .content
            .text();
        let digits = task.split_once(SUBAGENT)?.1;
        digits[..digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len())]
            .parse()
            .ok()
    }
}

#[async_trait]
impl ChatModel for HijackedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let messages = serde_json::to_string(&request.messages).expect("messages are JSON");
        self.shown
            .lock()
            .push(format!("{:?} {messages}", request.system));
        let subagent = Self::subagent(&request);
        let calls = match subagent {
            Some(number) => self.subagents[number].lock().pop_front(),
            None => self.lead.lock().pop_front(),
        };
        let calls = calls.unwrap_or_default();
        let made = calls.iter().map(|attempt| MadeCall {
            attempt: attempt.clone(),
            by_subagent: subagent.is_some(),
        });
        self.made.lock().extend(made);
        let id = &request.message_id;
        let chunk = |(index, call): (u32, &Attempt)| ToolCallChunk {
            name: Some(call.name.clone()),
            args: Some(call.args.clone()),
            id: Some(call.id.clone()),
            index,
            kind: "tool_call_chunk",
        };
        let content = if calls.is_empty() {
            "done".to_owned()
        } else {
            String::new()
        };
        let chunks = [
            MessageChunk {
                content,
                tool_call_chunks: (0..).zip(&calls).map(chunk).collect(),
                ..MessageChunk::empty(id)
            },
            MessageChunk {
                chunk_position: Some("last"),
                ..MessageChunk::empty(id)
            },
        ];
        Ok(stream::iter(chunks.map(Ok)).boxed())
    }
}
