//! Serialized forms of the payloads that are not the fields of their events.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::adapter::{FlowError, PromptSegment, TurnDelta, Usage};

pub(super) fn empty<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_map(Some(0))?.end()
}

pub(super) fn error<S: Serializer>(error: &FlowError, serializer: S) -> Result<S::Ok, S::Error> {
    field("error", error, serializer)
}

pub(super) fn interrupts<S: Serializer>(
    interrupts: &[Value],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    field("interrupts", interrupts, serializer)
}

fn field<S: Serializer>(
    name: &str,
    value: &(impl Serialize + ?Sized),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_map(Some(1))?;
    fields.serialize_entry(name, value)?;
    fields.end()
}

pub(super) fn segments<S: Serializer>(
    segments: &Arc<[PromptSegment]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    segments[..].serialize(serializer)
}

/// Serializes the texts that a fragment has, and the part of the answer that it belongs to.
pub(super) fn delta<S: Serializer>(delta: &TurnDelta, serializer: S) -> Result<S::Ok, S::Error> {
    let TurnDelta { text, reasoning } = delta;
    let mut fields = serializer.serialize_map(None)?;
    if !text.is_empty() {
        fields.serialize_entry("deltaText", text)?;
        fields.serialize_entry("part", "final")?;
    }
    if !reasoning.is_empty() {
        fields.serialize_entry("deltaReasoningText", reasoning)?;
        if text.is_empty() {
            fields.serialize_entry("part", "reasoning")?;
        }
    }
    fields.end()
}

/// Serializes the fields of a completed turn after its status, which is the first field of failed
/// turns as well.
pub(super) fn completed<S: Serializer>(
    usage: &Usage,
    structured: &Option<Value>,
    reasoning: &Option<String>,
    tool_calls: &[Value],
    artifacts: &[Value],
    duration_ms: &u64,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_map(Some(7))?;
    fields.serialize_entry("status", "completed")?;
    fields.serialize_entry("usage", usage)?;
    fields.serialize_entry("structuredOutput", structured)?;
    fields.serialize_entry("reasoningText", reasoning)?;
    fields.serialize_entry("toolCalls", tool_calls)?;
    fields.serialize_entry("artifacts", artifacts)?;
    fields.serialize_entry("durationMs", duration_ms)?;
    fields.end()
}
