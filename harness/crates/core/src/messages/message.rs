//! One message, immutable and cheap to clone, whose JSON is serialized once and shared.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::message_body::{MessageBody, MessageKind, ToolStatus};
use super::provider_json::Cache;
use super::text_pieces::Frame;
use super::{Content, InvalidToolCall, TextSize, ToolCall, UsageMetadata};
use crate::ids::IdSource;
use crate::json_size::{LARGE_TEXT, json_bytes, raw_value_of_size};

/// Id of a remove message that drops all messages before it.
pub const REMOVE_ALL: &str = "__remove_all__";

/// Maximum size of a content whose forms for models are cached, in bytes, and of a text with calls,
/// in characters.
const MAX_CACHED: usize = 1 << 20;

/// A message. Clones share one allocation and its JSON.
#[derive(Debug, Clone)]
pub struct Message {
    pub(super) inner: Arc<Inner>,
    /// Creates the text that models receive instead of that of the fields.
    pub(super) frame: Option<Frame>,
}

/// Fields of a message, and what is derived from them at the first use.
///
/// In this order in memory: a pass over a long conversation costs a cache miss for each line that it
/// reads of a message, and the first fields share one with the reference count.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Inner {
    pub(super) traits: Traits,
    pub(super) wire: Cache<Inner>,
    size: OnceLock<TextSize>,
    json: OnceLock<Arc<Box<RawValue>>>,
    pub(super) fields: MessageBody,
    /// Form for models, built when its fields are read; `None` if it has the same fields.
    pub(super) framed: OnceLock<Option<Message>>,
}

/// Properties that every request to a model tests of all messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traits {
    is_human: bool,
    is_ai: bool,
    is_result: bool,
    has_calls: bool,
    is_blank: bool,
    has_large_content: bool,
}

impl Traits {
    fn of(body: &MessageBody) -> Self {
        let has_calls = match &body.kind {
            MessageKind::Ai {
                tool_calls,
                invalid_tool_calls,
                ..
            } => {
                let parsed = !tool_calls.is_empty() || !invalid_tool_calls.is_empty();
                parsed || body.additional_kwargs.contains_key("tool_calls")
            }
            _ => false,
        };
        Self {
            is_human: matches!(body.kind, MessageKind::Human),
            is_ai: matches!(body.kind, MessageKind::Ai { .. }),
            is_result: matches!(body.kind, MessageKind::Tool { .. }),
            has_calls,
            is_blank: body.content.is_blank(),
            has_large_content: body.content.bytes() > MAX_CACHED,
        }
    }
}

impl Deref for Message {
    type Target = MessageBody;
    fn deref(&self) -> &MessageBody {
        &self.own_or_form().inner.fields
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || **self == **other
    }
}

impl From<MessageBody> for Inner {
    fn from(fields: MessageBody) -> Self {
        Self {
            traits: Traits::of(&fields),
            wire: Cache::default(),
            size: OnceLock::new(),
            json: OnceLock::new(),
            fields,
            framed: OnceLock::new(),
        }
    }
}

impl From<MessageBody> for Message {
    fn from(body: MessageBody) -> Self {
        Self {
            inner: Arc::new(body.into()),
            frame: None,
        }
    }
}

impl Message {
    /// Creates a user message.
    pub fn human(content: impl Into<Content>) -> Self {
        MessageBody::new(MessageKind::Human, content).into()
    }

    /// Creates a system message.
    pub fn system(content: impl Into<Content>) -> Self {
        MessageBody::new(MessageKind::System, content).into()
    }

    /// Creates a model's answer without calls.
    pub fn ai(content: impl Into<Content>) -> Self {
        MessageBody::new(
            MessageKind::Ai {
                tool_calls: vec![],
                invalid_tool_calls: vec![],
                usage_metadata: None,
            },
            content,
        )
        .into()
    }

    /// Creates a tool's answer to `call`.
    pub fn tool(call: &ToolCall, content: impl Into<Content>, status: ToolStatus) -> Self {
        let mut body = MessageBody::new(
            MessageKind::Tool {
                tool_call_id: call.id.clone(),
                artifact: Value::Null,
                status,
            },
            content,
        );
        body.name = Some(call.name.clone());
        body.into()
    }

    /// Creates a remove marker for the message `id`.
    pub fn remove(id: impl Into<String>) -> Self {
        let mut body = MessageBody::new(MessageKind::Remove, "");
        body.id = Some(id.into());
        body.into()
    }

    /// Returns a copy with some fields changed.
    pub fn with(&self, change: impl FnOnce(&mut MessageBody)) -> Self {
        let mut body = MessageBody::clone(self);
        change(&mut body);
        body.into()
    }

    /// Returns the message with some fields changed. Copies its fields only if other clones exist.
    #[must_use]
    pub fn into_with(mut self, change: impl FnOnce(&mut MessageBody)) -> Self {
        let own = Arc::get_mut(&mut self.inner).filter(|_| self.frame.is_none());
        let Some(inner) = own else {
            return self.with(change);
        };
        change(&mut inner.fields);
        inner.traits = Traits::of(&inner.fields);
        inner.wire = Cache::default();
        inner.size = OnceLock::new();
        inner.json = OnceLock::new();
        inner.framed = OnceLock::new();
        self
    }

    /// Returns the message with an id: its own, or a new one of `ids`.
    #[must_use]
    pub fn identified(self, ids: &dyn IdSource) -> Self {
        if self.id.is_some() {
            self
        } else {
            self.into_with(|body| body.id = Some(ids.message_id()))
        }
    }

    /// Returns the message as JSON, serialized at the first call.
    pub fn json(&self) -> &RawValue {
        self.shared_json()
    }

    fn shared_json(&self) -> &Arc<Box<RawValue>> {
        let Inner { json, fields, .. } = &*self.own_or_form().inner;
        let serialized = || json_of(fields).unwrap_or_else(|_| RawValue::NULL.to_owned());
        json.get_or_init(|| Arc::new(serialized()))
    }

    /// Returns the message as JSON, like [`Message::json`]. The bytes share its memory.
    pub fn json_bytes(&self) -> Bytes {
        json_bytes(Arc::clone(self.shared_json()))
    }

    /// Reports whether both are clones of one message. `false` for equal messages of different
    /// origin.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) && self.frame.is_some() == other.frame.is_some()
    }

    /// Returns the text size of the message, measured at the first call. The form for models has the
    /// size of the text without its frame.
    pub fn size(&self) -> TextSize {
        let Inner { size, fields, .. } = &*self.inner;
        *size.get_or_init(|| TextSize::of_message(&fields.content, self.tool_calls()))
    }

    /// Reports whether the forms of the message for models are too large to cache.
    pub fn is_large(&self) -> bool {
        self.inner.traits.has_large_content || {
            let TextSize { narrow, wide } = self.size();
            narrow + wide > MAX_CACHED as u64
        }
    }

    /// Parses a message from the JSON that [`Message::json`] returned, and caches this JSON, so
    /// that the message is not serialized again.
    pub fn from_stored(json: impl Into<String>) -> serde_json::Result<Self> {
        let json = json.into();
        let message: Self = serde_json::from_str(&json)?;
        // The message is new, so the JSON is not set yet.
        let json = RawValue::from_string(json)?;
        let _first = message.inner.json.set(Arc::new(json));
        Ok(message)
    }

    /// Returns the kind. Reading it does not build the fields of a form for models, unlike the field.
    pub fn kind(&self) -> &MessageKind {
        &self.inner.fields.kind
    }

    /// Returns the type name on the wire: `human`, `system`, `ai`, `tool`, `remove`.
    pub fn type_name(&self) -> &'static str {
        self.kind().type_name()
    }

    /// Returns the calls of an AI message; none for other kinds.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match self.kind() {
            MessageKind::Ai { tool_calls, .. } => tool_calls,
            _ => &[],
        }
    }

    /// Returns the ids of all calls of an AI message that get results, including those with invalid
    /// arguments.
    pub fn call_ids(&self) -> impl Iterator<Item = &str> {
        let unreadable: &[InvalidToolCall] = match self.kind() {
            MessageKind::Ai {
                invalid_tool_calls, ..
            } => invalid_tool_calls,
            _ => &[],
        };
        self.tool_calls()
            .iter()
            .map(|call| call.id.as_str())
            .chain(unreadable.iter().filter_map(|call| call.id.as_deref()))
    }

    /// Returns the id of the call that a tool message answers.
    pub fn tool_call_id(&self) -> Option<&str> {
        match self.kind() {
            MessageKind::Tool { tool_call_id, .. } => Some(tool_call_id),
            _ => None,
        }
    }

    /// Returns the token counts of an AI message.
    pub fn usage(&self) -> Option<&UsageMetadata> {
        match self.kind() {
            MessageKind::Ai { usage_metadata, .. } => usage_metadata.as_deref(),
            _ => None,
        }
    }

    /// Reports whether it is a model's message.
    pub fn is_ai(&self) -> bool {
        self.inner.traits.is_ai
    }

    /// Reports whether it is a user's message.
    pub fn is_human(&self) -> bool {
        self.inner.traits.is_human
    }

    /// Reports whether it is the result of a tool call.
    pub fn is_result(&self) -> bool {
        self.inner.traits.is_result
    }

    /// Reports whether it has tool calls: parsed, with invalid arguments, or in the provider's form.
    pub fn has_calls(&self) -> bool {
        self.inner.traits.has_calls
    }

    /// Reports whether its content has no text but whitespace.
    pub fn is_blank(&self) -> bool {
        self.inner.traits.is_blank
    }

    /// Reports whether `additional_kwargs[key]` is `true`.
    pub fn flag(&self, key: &str) -> bool {
        self.inner.fields.flag(key)
    }
}

fn json_of(body: &MessageBody) -> serde_json::Result<Box<RawValue>> {
    match &body.content {
        // The rest is for line breaks and quotes, which are escaped, and for the other fields.
        Content::Text(text) if text.len() >= LARGE_TEXT => {
            raw_value_of_size(body, text.len() + text.len() / 16)
        }
        // The copy has the size of the text. The buffer of the serializer has up to twice of it, and
        // allocators do not shrink blocks that are half full.
        _ => to_raw_value(body).map(|json| Box::clone(&json)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_of_a_large_text_is_the_same_as_of_others() {
        for text in ["x".repeat(LARGE_TEXT), "\"\n".repeat(LARGE_TEXT)] {
            let message = Message::human(text);
            let json = to_raw_value(&message.inner.fields).unwrap();
            assert_eq!(message.json().get(), json.get());
        }
    }
}
