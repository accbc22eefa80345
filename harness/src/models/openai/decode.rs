//! Reads the events of a chat-completions stream. Pure; never panics, whatever it is given.

use serde_json::Value;

use super::calls::{CallTable, TooManyCalls};
use super::dialect::Dialect;
use super::event::{CallDelta, Choice, Event};
use super::reasoning_details::add_fragment;
use super::text_calls::take_calls;
use crate::messages::MessageChunk;
use crate::models::http::{
    AnswerReader, Chunks, DecodeError, Ending, Refused, ThinkSplitter, add_reasoning,
    says_something,
};

impl From<TooManyCalls> for DecodeError {
    fn from(_: TooManyCalls) -> Self {
        Self::TooLong("the answer has too many tool calls".to_owned())
    }
}

/// Where a message keeps the details of its reasoning, in its `additional_kwargs`.
pub(super) const REASONING_DETAILS_KWARG: &str = "reasoning_details";

/// What is known of the answer so far.
#[derive(Debug)]
pub(in crate::models) struct Reader {
    ending: Ending,
    calls: CallTable,
    /// For models that write their thoughts into the text.
    splitter: Option<ThinkSplitter>,
    /// For providers that want them back.
    details: Option<Vec<Value>>,
    /// Calls may stand in the text of an answer that was not streamed.
    calls_in_text: bool,
    any_choice: bool,
}

impl Reader {
    /// A reader for the message `message_id`; `model` is the name to report when the provider gives none.
    pub(super) fn new(message_id: &str, dialect: Dialect, model: &str) -> Self {
        Self {
            ending: Ending::new(message_id, dialect.provider, model),
            calls: CallTable::default(),
            splitter: dialect.parts_think_tags.then(ThinkSplitter::default),
            details: dialect.returns_reasoning_details.then(Vec::new),
            calls_in_text: dialect.calls_in_text,
            any_choice: false,
        }
    }
}

impl AnswerReader for Reader {
    fn event(&mut self, payload: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        if payload == b"[DONE]" {
            self.close(out)
        } else {
            self.take(payload, out)
        }
    }

    fn whole(&mut self, body: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        self.take(body, out)
    }

    fn close(&mut self, out: &mut Chunks) -> Result<(), DecodeError> {
        if !self.any_choice {
            return Err(DecodeError::NoChoices);
        }
        let mut late = self.ending.chunk();
        if let Some(splitter) = &mut self.splitter {
            let parts = splitter.end();
            late.content = parts.answer;
            add_reasoning(&mut late, parts.thoughts);
        }
        self.calls.close(&mut late);
        if let Some(details) = self.details.take().filter(|details| !details.is_empty()) {
            late.additional_kwargs
                .insert(REASONING_DETAILS_KWARG.to_owned(), Value::Array(details));
        }
        let default_reason = if self.calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        self.ending
            .close(late, "finish_reason", default_reason, out);
        Ok(())
    }

    fn ending(&self) -> &Ending {
        &self.ending
    }
}

impl Reader {
    fn take(&mut self, json: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        let event: Event = serde_json::from_slice(json)?;
        if event.may_be_refusal()
            && let Some(refused) = Refused::read(&serde_json::from_slice::<Value>(json)?)
        {
            return Err(DecodeError::Refused(refused));
        }
        self.ending.name_model(event.model);
        if let Some(usage) = event.usage {
            self.ending.usage = Some(usage.into());
        }
        // Only the first choice is the answer; nobody asked for a second.
        let choices = event.choices.unwrap_or_default();
        if let Some(choice) = choices
            .into_iter()
            .find(|choice| choice.index.unwrap_or(0) == 0)
        {
            self.choice(choice, out)?;
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice, out: &mut Chunks) -> Result<(), DecodeError> {
        self.any_choice = true;
        let whole = choice.message.is_some();
        let mut delta = choice.delta.or(choice.message).unwrap_or_default();
        if let (Some(kept), Some(details)) = (&mut self.details, delta.details()) {
            if whole {
                kept.extend_from_slice(details);
            } else {
                details
                    .iter()
                    .for_each(|fragment| add_fragment(kept, fragment));
            }
        }
        let mut chunk = self.ending.chunk();
        chunk.content = delta.text();
        let mut reasoning = delta.reasoning();
        if let Some(splitter) = &mut self.splitter {
            let parts = splitter.push(&chunk.content);
            reasoning.push_str(&parts.thoughts);
            chunk.content = parts.answer;
        }
        add_reasoning(&mut chunk, reasoning);
        if whole && self.calls_in_text {
            self.take_text_calls(&mut chunk)?;
        }
        for fragment in delta.tool_calls.unwrap_or_default() {
            self.calls.add(fragment, &mut chunk)?;
        }
        self.ending.give_reason(choice.finish_reason);
        out.extend(says_something(&chunk).then_some(chunk));
        Ok(())
    }

    fn take_text_calls(&mut self, chunk: &mut MessageChunk) -> Result<(), DecodeError> {
        let (text, calls) = take_calls(&chunk.content);
        chunk.content = text;
        for call in calls {
            self.calls
                .add(CallDelta::whole(call.name, call.args), chunk)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
