//! Tool calls: starts, output and ends, from the frames of the tasks that make them.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::blocks::text_of;
use crate::thread_log::event::{Channel, Draft, Namespace};

/// Calls of a run whose tasks have started, by the namespace of the task.
#[derive(Debug, Default)]
pub(super) struct ToolCalls(HashMap<Namespace, Call>);

/// A tool call.
#[derive(Debug, Deserialize)]
pub(super) struct Call {
    pub(super) id: String,
    name: String,
    #[serde(default)]
    args: Value,
}

impl Call {
    /// Returns the name of the agent that the call starts, if it starts one.
    pub(super) fn agent(&self) -> &str {
        self.args["subagent_type"].as_str().unwrap_or(&self.name)
    }
}

/// Frame of a task, as far as it is read.
#[derive(Debug, Deserialize)]
struct TaskFrame<'a> {
    id: String,
    name: String,
    /// Present in the frame of a start.
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    error: Option<String>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    interrupts: Vec<Value>,
}

/// Update of a task, as far as it is read.
#[derive(Debug, Deserialize)]
struct TaskResult {
    #[serde(default)]
    messages: Vec<Value>,
}

/// Namespace of a nested agent that has ended, and its last status.
pub(super) type NestedEnd = (Namespace, &'static str);

impl ToolCalls {
    /// Converts the frame of a task. Returns the nested agent that ended with the task.
    pub(super) fn frame(
        &mut self,
        data: &[u8],
        namespace: &Namespace,
        events: &mut Vec<Draft>,
    ) -> Result<Option<NestedEnd>, serde_json::Error> {
        let task: TaskFrame<'_> = serde_json::from_slice(data)?;
        let inner = [&namespace[..], &[format!("{}:{}", task.name, task.id)]].concat();
        match task.input {
            // The input of other tasks is the state.
            Some(input) if !input.get().starts_with('[') => Ok(None),
            Some(input) => {
                let calls: Vec<Call> = serde_json::from_str(input.get())?;
                if let Some(call) = calls.into_iter().next() {
                    events.push(started(namespace, &call));
                    self.0.insert(inner, call);
                }
                Ok(None)
            }
            None => {
                let end = end_of(&task);
                if let Some(call) = self.0.remove(&inner) {
                    events.extend(ended(namespace, &call, &task)?);
                }
                Ok(Some((inner, end)))
            }
        }
    }

    /// Returns the call whose task has this namespace.
    pub(super) fn of_namespace(&self, namespace: &[String]) -> Option<&Call> {
        self.0.get(namespace)
    }
}

/// Converts output that a running tool prints.
pub(super) fn output(namespace: Namespace, call: &str, delta: &str) -> Draft {
    let data = json!({ "event": "tool-output-delta", "tool_call_id": call, "delta": delta });
    Draft::new(Channel::Tools, namespace, &data)
}

fn started(namespace: &Namespace, call: &Call) -> Draft {
    let data = json!({
        "event": "tool-started", "tool_call_id": call.id, "tool_name": call.name, "input": call.args,
    });
    Draft::new(Channel::Tools, namespace.clone(), &data)
}

fn end_of(task: &TaskFrame<'_>) -> &'static str {
    if task.error.is_some() {
        "failed"
    } else if task.interrupts.is_empty() {
        "completed"
    } else {
        "interrupted"
    }
}

/// Converts the end of a call. A call that asks has none: it starts again with the answer.
fn ended(
    namespace: &Namespace,
    call: &Call,
    task: &TaskFrame<'_>,
) -> Result<Option<Draft>, serde_json::Error> {
    if task.error.is_none() && !task.interrupts.is_empty() {
        return Ok(None);
    }
    let failed = |message: &str| {
        let data = json!({ "event": "tool-error", "tool_call_id": call.id, "tool_name": call.name, "message": message });
        Draft::new(Channel::Tools, namespace.clone(), &data)
    };
    if let Some(error) = &task.error {
        return Ok(Some(failed(error)));
    }
    let result = task.result.map(|result| serde_json::from_str(result.get()));
    let messages = result
        .transpose()?
        .map(|result: TaskResult| result.messages);
    let output = messages
        .unwrap_or_default()
        .into_iter()
        .find(|message| message["tool_call_id"] == call.id.as_str())
        .unwrap_or_default();
    if output["status"] == "error" {
        return Ok(Some(failed(&text_of(&output["content"]))));
    }
    let data = json!({
        "event": "tool-finished", "tool_call_id": call.id, "tool_name": call.name, "output": output,
    });
    Ok(Some(Draft::new(Channel::Tools, namespace.clone(), &data)))
}
