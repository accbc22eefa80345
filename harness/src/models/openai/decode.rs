//! Decodes a chat-completions stream into message chunks, byte by byte as it comes. Pure; never panics, whatever the bytes.

use serde_json::{Map, Value};

use super::calls::{CallTable, TooManyCalls};
use super::dialect::Dialect;
use super::event::{Choice, Event};
use super::sse::{EventCutter, EventTooLong, LONGEST_EVENT};
use super::think::ThinkSplitter;
use crate::messages::{MessageChunk, UsageMetadata, kwargs};

/// Why a stream cannot be decoded any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DecodeError {
    /// The stream ended before the answer did.
    #[error("the stream was cut before its end")]
    Cut,
    /// An event is not what it should be.
    #[error("a chunk of the stream is not valid: {0}")]
    Malformed(String),
    /// An event or an answer is longer than anybody can mean.
    #[error("{0}")]
    TooLong(String),
    /// The answer is complete and holds nothing.
    #[error("the answer has no choices")]
    NoChoices,
    /// The provider reports an error inside its answer.
    #[error("{message}")]
    Refused {
        /// Its code or type.
        code: String,
        /// Its words.
        message: String,
        /// The status it names.
        status: Option<u16>,
    },
}

impl From<EventTooLong> for DecodeError {
    fn from(_: EventTooLong) -> Self {
        Self::TooLong(format!("an event of the stream is longer than {} MiB", LONGEST_EVENT >> 20))
    }
}

impl From<TooManyCalls> for DecodeError {
    fn from(_: TooManyCalls) -> Self {
        Self::TooLong("the answer has too many tool calls".to_owned())
    }
}

/// The decoder of one answer.
#[derive(Debug)]
pub(super) struct Decoder {
    cutter: EventCutter,
    answer: Answer,
}

/// What is known of the answer so far.
#[derive(Debug)]
struct Answer {
    message_id: String,
    provider: &'static str,
    model: String,
    calls: CallTable,
    /// For models that write their thoughts into the text.
    splitter: Option<ThinkSplitter>,
    usage: Option<UsageMetadata>,
    finish_reason: Option<String>,
    any_choice: bool,
    events: u64,
    closed: bool,
}

impl Decoder {
    /// A decoder for the message `message_id`; `model` is the name to report when the provider gives none.
    pub(super) fn new(message_id: impl Into<String>, dialect: Dialect, model: impl Into<String>) -> Self {
        let answer = Answer {
            message_id: message_id.into(),
            provider: dialect.provider,
            model: model.into(),
            calls: CallTable::default(),
            splitter: dialect.splits_reasoning.then(ThinkSplitter::default),
            usage: None,
            finish_reason: None,
            any_choice: false,
            events: 0,
            closed: false,
        };
        Self { cutter: EventCutter::default(), answer }
    }

    /// Takes bytes of the stream and adds what they say to `out`.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut impl Extend<MessageChunk>) -> Result<(), DecodeError> {
        let answer = &mut self.answer;
        self.cutter.push(bytes, |data| answer.payload(data, out))
    }

    /// Takes the end of the stream, however it came. An answer with a finish reason is complete.
    pub(super) fn end(&mut self, out: &mut impl Extend<MessageChunk>) -> Result<(), DecodeError> {
        if let Some(rest) = self.cutter.rest()
            && !self.answer.closed
        {
            match self.answer.payload(&rest, out) {
                // Half an event is no malformed one: it was cut.
                Err(DecodeError::Malformed(_)) if self.is_finished() => {}
                Err(DecodeError::Malformed(_)) => return Err(DecodeError::Cut),
                taken => taken?,
            }
        }
        if self.answer.closed {
            return Ok(());
        }
        if !self.is_finished() {
            return Err(DecodeError::Cut);
        }
        self.answer.close(out)
    }

    /// Takes a whole answer that was not streamed.
    pub(super) fn whole(&mut self, body: &[u8], out: &mut impl Extend<MessageChunk>) -> Result<(), DecodeError> {
        self.answer.event(body, out)?;
        self.answer.close(out)
    }

    /// Whether the answer is complete; more bytes change nothing.
    pub(super) fn is_closed(&self) -> bool {
        self.answer.closed
    }

    /// Whether the reason of the end is known; only usage and the closing mark can follow.
    pub(super) fn is_finished(&self) -> bool {
        self.answer.finish_reason.is_some()
    }

    /// How many events the stream brought.
    pub(super) fn events(&self) -> u64 {
        self.answer.events
    }
}

impl Answer {
    fn payload(&mut self, data: &[u8], out: &mut impl Extend<MessageChunk>) -> Result<(), DecodeError> {
        self.events += 1;
        match data.trim_ascii() {
            _ if self.closed => Ok(()),
            b"" => Ok(()),
            b"[DONE]" => self.close(out),
            json => self.event(json, out),
        }
    }

    fn event(&mut self, json: &[u8], out: &mut impl Extend<MessageChunk>) -> Result<(), DecodeError> {
        let event: Event = serde_json::from_slice(json).map_err(|error| DecodeError::Malformed(error.to_string()))?;
        if let Some(refused) = refusal(&event) {
            return Err(refused);
        }
        if let Some(model) = event.model.filter(|model| !model.is_empty()) {
            self.model = model;
        }
        if let Some(usage) = event.usage {
            // The last count is the whole one, also where every event brings a running total.
            self.usage = Some(usage.into());
        }
        // Only the first choice is the answer; nobody asked for a second.
        let choices = event.choices.unwrap_or_default();
        if let Some(choice) = choices.into_iter().find(|choice| choice.index.unwrap_or(0) == 0) {
            self.choice(choice, out)?;
        }
        Ok(())
    }

    fn choice(&mut self, choice: Choice, out: &mut impl Extend<MessageChunk>) -> Result<(), DecodeError> {
        self.any_choice = true;
        let mut delta = choice.delta.or(choice.message).unwrap_or_default();
        let mut chunk = MessageChunk::empty(self.message_id.clone());
        chunk.content = delta.text();
        let mut reasoning = delta.reasoning();
        if let Some(splitter) = &mut self.splitter {
            let parts = splitter.push(&chunk.content);
            reasoning.push_str(&parts.thoughts);
            chunk.content = parts.answer;
        }
        add_reasoning(&mut chunk, reasoning);
        for fragment in delta.tool_calls.unwrap_or_default() {
            self.calls.add(fragment, &mut chunk)?;
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish_reason = Some(reason);
        }
        out.extend(says_something(&chunk).then_some(chunk));
        Ok(())
    }

    /// Usage in a chunk of its own, then the closing chunk.
    fn close(&mut self, out: &mut impl Extend<MessageChunk>) -> Result<(), DecodeError> {
        if !self.any_choice {
            return Err(DecodeError::NoChoices);
        }
        self.closed = true;
        let mut late = MessageChunk::empty(self.message_id.clone());
        if let Some(splitter) = &mut self.splitter {
            let parts = splitter.end();
            late.content = parts.answer;
            add_reasoning(&mut late, parts.thoughts);
        }
        self.calls.close(&mut late);
        out.extend(says_something(&late).then_some(late));
        if let Some(usage) = self.usage.take() {
            out.extend([MessageChunk { usage_metadata: Some(usage), ..MessageChunk::empty(self.message_id.clone()) }]);
        }
        let default_reason = if self.calls.is_empty() { "stop" } else { "tool_calls" };
        let finish_reason = self.finish_reason.take().unwrap_or_else(|| default_reason.to_owned());
        let facts = [("finish_reason", finish_reason), ("model_name", self.model.clone()), ("model_provider", self.provider.to_owned())];
        out.extend([MessageChunk {
            response_metadata: facts.into_iter().map(|(key, value)| (key.to_owned(), Value::String(value))).collect::<Map<_, _>>(),
            chunk_position: Some("last"),
            ..MessageChunk::empty(self.message_id.clone())
        }]);
        Ok(())
    }
}

fn add_reasoning(chunk: &mut MessageChunk, reasoning: String) {
    if !reasoning.is_empty() {
        chunk.additional_kwargs.insert(kwargs::REASONING_CONTENT.to_owned(), Value::String(reasoning));
    }
}

fn says_something(chunk: &MessageChunk) -> bool {
    !chunk.content.is_empty() || !chunk.additional_kwargs.is_empty() || !chunk.tool_call_chunks.is_empty()
}

/// The error that an event or an error body reports, in any of the forms servers use.
pub(super) fn refusal(event: &Event) -> Option<DecodeError> {
    let (code, message) = match &event.error {
        Some(Value::Object(error)) => (error.get("code").or(error.get("type")), error.get("message")),
        Some(Value::String(_)) => (event.code.as_ref(), event.error.as_ref()),
        Some(Value::Null) | None if event.object.as_deref() == Some("error") => (event.code.as_ref(), event.message.as_ref()),
        _ => return None,
    };
    let code_word = match &event.error {
        Some(Value::Object(error)) if code.is_none_or(|code| !code.is_string()) => error.get("type"),
        _ => code,
    };
    let status = code.and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok()).filter(|status| (400..600).contains(status));
    let text = |value: Option<&Value>| match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let message = Some(text(message)).filter(|message| !message.is_empty()).unwrap_or_else(|| "the provider reported an error".to_owned());
    Some(DecodeError::Refused { code: text(code_word), message, status })
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
