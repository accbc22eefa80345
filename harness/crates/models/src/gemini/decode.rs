//! Decodes the events of a Gemini stream. Pure; never panics for any input.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::SIGNATURE;
use super::event::{GenerateContentEvent, Part, PromptFeedback};
use crate::http::{
    AnswerParts, AnswerReader, Chunks, Completion, DecodeError, ModelOrigin, ProviderError,
    ToolCallBuilder, add_reasoning, attach_parts, has_content,
};
use deerflow_core::messages::MessageChunk;

/// Maximum number of tool calls in one answer. More are an error of the provider.
const MAX_CALLS: u32 = 1024;

/// State of a partly decoded answer.
#[derive(Debug)]
pub(crate) struct GenerateContentReader {
    completion: Completion,
    origin: Arc<ModelOrigin>,
    parts: AnswerParts,
    calls: ToolCallBuilder,
    any_candidate: bool,
}

impl GenerateContentReader {
    /// Creates a reader for the message `message_id` of `origin`.
    pub(super) fn new(message_id: &str, origin: Arc<ModelOrigin>) -> Self {
        Self {
            completion: Completion::new(message_id, origin.provider(), origin.model()),
            origin,
            parts: AnswerParts::default(),
            calls: ToolCallBuilder::default(),
            any_candidate: false,
        }
    }

    fn read_event(&mut self, value: Value, out: &mut Chunks) -> Result<(), DecodeError> {
        let provider_error = ProviderError::read(&value);
        let event: GenerateContentEvent = serde_json::from_value(value)?;
        if let Some(provider_error) = provider_error.filter(|_| event.error.is_some()) {
            return Err(DecodeError::ProviderError(provider_error));
        }
        self.completion.set_model(event.model_version);
        if let Some(usage) = event.usage_metadata {
            self.completion.usage = Some(usage.into());
        }
        if let Some(blocked) = event.prompt_feedback.and_then(blocked_prompt_error) {
            return Err(DecodeError::ProviderError(blocked));
        }
        // Only the first candidate is the answer; no other one was requested.
        let candidates = event.candidates.unwrap_or_default();
        let Some(candidate) = candidates
            .into_iter()
            .find(|candidate| candidate.index.unwrap_or(0) == 0)
        else {
            return Ok(());
        };
        self.any_candidate = true;
        let mut chunk = self.completion.chunk();
        let mut thoughts = String::new();
        for part in candidate
            .content
            .and_then(|content| content.parts)
            .unwrap_or_default()
        {
            self.part(part, &mut thoughts, &mut chunk)?;
        }
        add_reasoning(&mut chunk, thoughts);
        self.completion.set_reason(candidate.finish_reason);
        out.extend(has_content(&chunk).then_some(chunk));
        Ok(())
    }

    fn part(
        &mut self,
        part: Part,
        thoughts: &mut String,
        chunk: &mut MessageChunk,
    ) -> Result<(), DecodeError> {
        let signature = part
            .thought_signature
            .filter(|signature| !signature.is_empty());
        let extras: Map<_, _> = signature
            .iter()
            .map(|signature| (SIGNATURE.to_owned(), json!(signature)))
            .collect();
        if let Some(call) = part.function_call {
            let args = call
                .args
                .filter(Value::is_object)
                .unwrap_or_else(|| json!({}));
            let id = call.id.unwrap_or_default();
            let at = self
                .calls
                .whole(&id, call.name.as_deref().unwrap_or_default(), &args, chunk);
            if at >= MAX_CALLS {
                return Err(DecodeError::TooLong(
                    "the answer has too many tool calls".to_owned(),
                ));
            }
            self.parts.call(self.calls.id(at), extras);
        } else if part.thought == Some(true) {
            thoughts.push_str(&part.text.unwrap_or_default());
            // The API requires only the signature of a thought back, not its text.
            self.parts.text_with("", extras);
        } else if let Some(text) = part.text {
            self.parts.text_with(&text, extras);
            chunk.content.push_str(&text);
        } else if part.other.is_empty() {
            self.parts.text_with("", extras);
        } else {
            let mut own = part.other;
            own.extend(extras);
            self.parts.provider_specific(Value::Object(own));
        }
        Ok(())
    }
}

/// Returns the error for a blocked prompt.
fn blocked_prompt_error(feedback: PromptFeedback) -> Option<ProviderError> {
    let reason = feedback.block_reason?;
    let message = match feedback.block_reason_message {
        Some(message) => format!("the provider blocked the prompt ({reason}): {message}"),
        None => format!("the provider blocked the prompt ({reason})"),
    };
    Some(ProviderError {
        code: reason,
        message,
        status: Some(400),
        retry_after: None,
    })
}

impl AnswerReader for GenerateContentReader {
    fn event(&mut self, payload: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        self.read_event(serde_json::from_slice(payload)?, out)
    }

    fn whole(&mut self, body: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        match serde_json::from_slice(body)? {
            Value::Array(events) => events
                .into_iter()
                .try_for_each(|event| self.read_event(event, out)),
            event => self.read_event(event, out),
        }
    }

    fn close(&mut self, out: &mut Chunks) -> Result<(), DecodeError> {
        if !self.any_candidate {
            return Err(DecodeError::NoChoices);
        }
        let mut trailing = self.completion.chunk();
        attach_parts(&mut trailing, &mut self.parts, &self.origin);
        self.completion
            .close(trailing, "finish_reason", "STOP", out);
        Ok(())
    }

    fn completion(&self) -> &Completion {
        &self.completion
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
