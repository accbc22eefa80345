//! Reads the events of a Gemini stream. Pure; never panics, whatever it is given.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::SIGNATURE;
use super::event::{Event, Part, PromptFeedback};
use crate::messages::MessageChunk;
use crate::models::http::{
    AnswerReader, CallPieces, Chunks, DecodeError, Ending, Maker, Parts, Refused, add_reasoning,
    keep_parts, says_something,
};

/// More calls than this in one answer are a fault of the provider's stream.
const MOST_CALLS: u32 = 1024;

/// What is known of the answer so far.
#[derive(Debug)]
pub(in crate::models) struct Reader {
    ending: Ending,
    maker: Arc<Maker>,
    parts: Parts,
    calls: CallPieces,
    any_candidate: bool,
}

impl Reader {
    /// A reader for the message `message_id` of `maker`.
    pub(super) fn new(message_id: &str, maker: Arc<Maker>) -> Self {
        Self {
            ending: Ending::new(message_id, maker.provider(), maker.model()),
            maker,
            parts: Parts::default(),
            calls: CallPieces::default(),
            any_candidate: false,
        }
    }

    fn take(&mut self, value: Value, out: &mut Chunks) -> Result<(), DecodeError> {
        let refused = Refused::read(&value);
        let event: Event = serde_json::from_value(value)?;
        if let Some(refused) = refused.filter(|_| event.error.is_some()) {
            return Err(DecodeError::Refused(refused));
        }
        self.ending.name_model(event.model_version);
        if let Some(usage) = event.usage_metadata {
            self.ending.usage = Some(usage.into());
        }
        if let Some(blocked) = event.prompt_feedback.and_then(blocked) {
            return Err(DecodeError::Refused(blocked));
        }
        // Only the first candidate is the answer; nobody asked for a second.
        let candidates = event.candidates.unwrap_or_default();
        let Some(candidate) = candidates
            .into_iter()
            .find(|candidate| candidate.index.unwrap_or(0) == 0)
        else {
            return Ok(());
        };
        self.any_candidate = true;
        let mut chunk = self.ending.chunk();
        let mut thoughts = String::new();
        for part in candidate
            .content
            .and_then(|content| content.parts)
            .unwrap_or_default()
        {
            self.part(part, &mut thoughts, &mut chunk)?;
        }
        add_reasoning(&mut chunk, thoughts);
        self.ending.give_reason(candidate.finish_reason);
        out.extend(says_something(&chunk).then_some(chunk));
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
            if at >= MOST_CALLS {
                return Err(DecodeError::TooLong(
                    "the answer has too many tool calls".to_owned(),
                ));
            }
            self.parts.call(self.calls.id(at), extras);
        } else if part.thought == Some(true) {
            thoughts.push_str(&part.text.unwrap_or_default());
            // A thought itself is not wanted back, only its signature.
            self.parts.text_with("", extras);
        } else if let Some(text) = part.text {
            self.parts.text_with(&text, extras);
            chunk.content.push_str(&text);
        } else if part.other.is_empty() {
            self.parts.text_with("", extras);
        } else {
            let mut own = part.other;
            own.extend(extras);
            self.parts.own(Value::Object(own));
        }
        Ok(())
    }
}

/// The refusal of a prompt that may not be answered.
fn blocked(feedback: PromptFeedback) -> Option<Refused> {
    let reason = feedback.block_reason?;
    let message = match feedback.block_reason_message {
        Some(words) => format!("the provider blocked the prompt ({reason}): {words}"),
        None => format!("the provider blocked the prompt ({reason})"),
    };
    Some(Refused {
        code: reason,
        message,
        status: Some(400),
        retry_after: None,
    })
}

impl AnswerReader for Reader {
    fn event(&mut self, payload: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        self.take(serde_json::from_slice(payload)?, out)
    }

    fn whole(&mut self, body: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        match serde_json::from_slice(body)? {
            Value::Array(events) => events
                .into_iter()
                .try_for_each(|event| self.take(event, out)),
            event => self.take(event, out),
        }
    }

    fn close(&mut self, out: &mut Chunks) -> Result<(), DecodeError> {
        if !self.any_candidate {
            return Err(DecodeError::NoChoices);
        }
        let mut late = self.ending.chunk();
        keep_parts(&mut late, &mut self.parts, &self.maker);
        self.ending.close(late, "finish_reason", "STOP", out);
        Ok(())
    }

    fn ending(&self) -> &Ending {
        &self.ending
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
