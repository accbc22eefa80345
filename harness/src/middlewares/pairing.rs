//! Pairs tool calls with their results: a pure function over a message list.
//!
//! Providers reject a conversation in which a call has no result, a result has no call, or another
//! message separates a call from its result. Cancelled runs, truncated answers and non-conforming
//! providers produce such conversations. So calls get an id and a name if they lack one, results
//! move behind their calls in call order, orphaned results are removed, and a call without a result
//! gets one that states the reason.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::messages::{InvalidToolCall, Message, MessageKind, ToolCall, ToolStatus};

/// Maximum length of a parse error that is repeated to the model, in characters.
const MAX_REASON_CHARS: usize = 500;
/// Name for a call without a name.
const UNKNOWN_TOOL: &str = "unknown_tool";

/// Call of an answer, with the result that is paired with it.
struct CallSlot {
    /// Id from the provider, possibly empty.
    given_id: String,
    call: ToolCall,
    defect: Option<CallDefect>,
    result: Option<Message>,
}

/// Defect of a call as the model wrote it.
enum CallDefect {
    NoName,
    UnreadableArguments(String),
}

/// Returns the conversation with strictly paired calls and results.
pub fn repair(messages: Vec<Message>) -> Vec<Message> {
    let concerns_calls = |message: &Message| message.is_result() || message.has_calls();
    if !messages.iter().any(concerns_calls) {
        return messages;
    }
    let mut used_ids = HashSet::new();
    let mut slots: Vec<Vec<CallSlot>> = messages
        .iter()
        .enumerate()
        .map(|(at, message)| slots_of(at, message, &mut used_ids))
        .collect();
    pair_by_id(&messages, &mut slots);
    pair_without_id(&messages, &mut slots);
    let mut repaired = Vec::with_capacity(messages.len());
    for (message, slots) in messages.into_iter().zip(slots) {
        match &message.kind {
            MessageKind::Tool { .. } => {}
            MessageKind::Ai { .. } => {
                repaired.push(with_calls(message, &slots));
                repaired.extend(slots.into_iter().map(CallSlot::into_result));
            }
            _ => repaired.push(message),
        }
    }
    repaired
}

/// Assigns each result to the nearest earlier call with its id that has no result yet.
fn pair_by_id(messages: &[Message], slots: &mut [Vec<CallSlot>]) {
    // Open calls of each id so far, the nearest last.
    let mut open: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
    let mut pairs = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if let Some(id) = message.tool_call_id().filter(|id| !id.is_empty()) {
            pairs.extend(
                open.get_mut(id)
                    .and_then(Vec::pop)
                    .map(|index| (index, message)),
            );
        }
        for (nth, slot) in slots[at].iter().enumerate().rev() {
            open.entry(&slot.given_id).or_default().push((at, nth));
        }
    }
    for ((at, nth), result) in pairs {
        slots[at][nth].result = Some(result.clone());
    }
}

/// Assigns results without an id to calls without an id of the preceding answer: by position if
/// their numbers are equal, otherwise by name if it is unambiguous.
fn pair_without_id(messages: &[Message], slots: &mut [Vec<CallSlot>]) {
    for (at, slots) in slots.iter_mut().enumerate() {
        let mut open: Vec<&mut CallSlot> = slots
            .iter_mut()
            .filter(|slot| slot.given_id.is_empty())
            .collect();
        if open.is_empty() {
            continue;
        }
        let behind = messages[at + 1..]
            .iter()
            .take_while(|message| !message.is_ai());
        let results: Vec<&Message> = behind
            .filter(|message| message.tool_call_id() == Some(""))
            .collect();
        if open.len() == results.len()
            && open
                .iter()
                .zip(&results)
                .all(|(slot, result)| slot.may_have(result))
        {
            for (slot, result) in open.into_iter().zip(results) {
                slot.result = Some(result.clone());
            }
            continue;
        }
        let sole = sole_by_name(&open);
        for result in results {
            let fitting = match result.name.as_deref().filter(|name| !name.is_empty()) {
                Some(name) => sole.get(name).copied().flatten(),
                None => (open.len() == 1).then_some(0),
            };
            if let Some(nth) = fitting {
                open[nth].result.get_or_insert_with(|| result.clone());
            }
        }
    }
}

/// Maps each name to the index of its call; `None` if several calls share the name.
fn sole_by_name(open: &[&mut CallSlot]) -> HashMap<String, Option<usize>> {
    let mut sole = HashMap::new();
    for (nth, slot) in open.iter().enumerate() {
        sole.entry(slot.call.name.clone())
            .and_modify(|index| *index = None)
            .or_insert(Some(nth));
    }
    sole
}

/// Returns the calls of an answer with unique ids. Some providers restart their ids with every
/// answer, others reject a conversation with duplicate ids.
fn slots_of(at: usize, message: &Message, taken: &mut HashSet<String>) -> Vec<CallSlot> {
    let MessageKind::Ai {
        tool_calls,
        invalid_tool_calls,
        ..
    } = &message.kind
    else {
        return Vec::new();
    };
    let mut slots: Vec<CallSlot> = if tool_calls.is_empty() && invalid_tool_calls.is_empty() {
        raw_calls(message)
            .iter()
            .map(|raw| CallSlot::of(raw_call(raw)))
            .collect()
    } else {
        tool_calls
            .iter()
            .cloned()
            .map(CallSlot::of)
            .chain(invalid_tool_calls.iter().map(CallSlot::of_invalid))
            .collect()
    };
    let readable = tool_calls.len();
    let source = |nth: usize| match (
        tool_calls.is_empty() && invalid_tool_calls.is_empty(),
        nth < readable,
    ) {
        (true, _) => "raw",
        (false, true) => "tool_calls",
        (false, false) => "invalid_tool_calls",
    };
    for (nth, slot) in slots.iter_mut().enumerate() {
        if slot.call.id.is_empty() || taken.contains(&slot.call.id) {
            slot.call.id = format!("deerflow_synthetic_tool_call_{at}_{}_{nth}", source(nth));
        }
        taken.insert(slot.call.id.clone());
    }
    slots
}

/// Returns the calls in the provider's raw form, if they were not parsed.
fn raw_calls(message: &Message) -> &[Value] {
    message
        .additional_kwargs
        .get("tool_calls")
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn raw_call(raw: &Value) -> ToolCall {
    let function = raw.get("function").unwrap_or(raw);
    let text = |value: &Value, key: &str| {
        value
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let args = match function.get("arguments").or_else(|| function.get("args")) {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        Some(Value::Object(args)) => args.clone(),
        _ => Map::new(),
    };
    ToolCall::new(text(raw, "id"), text(function, "name"), args)
}

impl CallSlot {
    fn of(mut call: ToolCall) -> Self {
        let nameless = call.name.trim().is_empty();
        if nameless {
            UNKNOWN_TOOL.clone_into(&mut call.name);
        }
        Self {
            given_id: call.id.clone(),
            call,
            defect: nameless.then_some(CallDefect::NoName),
            result: None,
        }
    }

    fn of_invalid(invalid: &InvalidToolCall) -> Self {
        let call = ToolCall::new(
            invalid.id.clone().unwrap_or_default(),
            invalid.name.clone().unwrap_or_default(),
            Map::new(),
        );
        let reason = invalid
            .error
            .clone()
            .unwrap_or_else(|| "not a JSON object".to_owned());
        let slot = Self::of(call);
        let defect = slot
            .defect
            .unwrap_or(CallDefect::UnreadableArguments(reason));
        Self {
            defect: Some(defect),
            ..slot
        }
    }

    /// Reports whether `result` may belong to this call: it has the same name or no name.
    fn may_have(&self, result: &Message) -> bool {
        result
            .name
            .as_deref()
            .is_none_or(|name| name.is_empty() || name == self.call.name)
    }

    fn into_result(self) -> Message {
        match self.result {
            Some(result) if result.tool_call_id() == Some(&self.call.id) => result,
            Some(result) => result.with(|body| {
                if let MessageKind::Tool { tool_call_id, .. } = &mut body.kind {
                    tool_call_id.clone_from(&self.call.id);
                }
            }),
            None => Message::tool(
                &self.call,
                missing(&self.call.name, self.defect.as_ref()),
                ToolStatus::Error,
            )
            .with(|body| body.id = Some(format!("missing_result_{}", self.call.id))),
        }
    }
}

/// Text of the result for a call that has none.
fn missing(tool: &str, defect: Option<&CallDefect>) -> String {
    match defect {
        None => format!("Error: {tool} was interrupted and gave no result. If it is still needed, call it again."),
        Some(CallDefect::NoName) => "Error: the call names no tool. Call one of the tools by its exact name.".to_owned(),
        Some(CallDefect::UnreadableArguments(_)) if tool == "write_file" => {
            "Error: write_file was not run, because its arguments were no complete JSON: most likely the content was too long for one \
             answer and was cut off. Do not send the same large content again. Write the file in parts, each in a call of its own with \
             append=true after the first, or give the text in your answer."
                .to_owned()
        }
        Some(CallDefect::UnreadableArguments(reason)) => {
            let reason: String = reason.chars().take(MAX_REASON_CHARS).collect();
            format!("Error: {tool} was not run, because its arguments could not be read: {reason}. Write them as one JSON object.")
        }
    }
}

/// Returns the answer with exactly the calls of its slots; unchanged if it already has them.
fn with_calls(message: Message, slots: &[CallSlot]) -> Message {
    let MessageKind::Ai {
        tool_calls,
        invalid_tool_calls,
        ..
    } = &message.kind
    else {
        return message;
    };
    let same =
        invalid_tool_calls.is_empty() && tool_calls.iter().eq(slots.iter().map(|slot| &slot.call));
    if same {
        return message;
    }
    message.with(|body| {
        if let MessageKind::Ai {
            tool_calls,
            invalid_tool_calls,
            ..
        } = &mut body.kind
        {
            *tool_calls = slots.iter().map(|slot| slot.call.clone()).collect();
            invalid_tool_calls.clear();
        }
    })
}

#[cfg(test)]
#[path = "pairing_tests.rs"]
mod tests;
