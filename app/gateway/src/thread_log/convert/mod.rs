//! Conversion of the frames of a run to events. It depends on the frames alone, so every node
//! converts a run to the same events.

mod blocks;
mod lifecycle;
mod messages;
mod questions;
mod received;
mod tools;

use std::collections::HashSet;

use bytes::Bytes;
use harness::runtime::stream_bridge::{EventData, StreamEvent, TerminalKind};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::event::{Channel, Draft, Namespace};
use lifecycle::Lifecycle;
use messages::Messages;
use tools::ToolCalls;

/// Converter of one attempt of a run.
#[derive(Debug)]
pub(super) struct RunConverter {
    lifecycle: Lifecycle,
    messages: Messages,
    calls: ToolCalls,
    /// Ids of the questions that were announced.
    announced: HashSet<String>,
    /// `true` if the run stopped for the user.
    is_interrupted: bool,
    /// Text of the `error` frame.
    error: Option<String>,
    /// State that waits for the next frame: clients read a checkpoint before the state that it
    /// stores, and runs publish it after.
    held_state: Option<Draft>,
}

impl RunConverter {
    /// Creates a converter for a run of the agent `graph`.
    pub(super) fn new(graph: &str) -> Self {
        Self {
            lifecycle: Lifecycle::new(graph),
            messages: Messages::default(),
            calls: ToolCalls::default(),
            announced: HashSet::new(),
            is_interrupted: false,
            error: None,
            held_state: None,
        }
    }

    /// Returns the event of a run that starts without a frame.
    pub(super) fn begin(&self) -> Draft {
        self.lifecycle.begun()
    }

    /// Converts one frame and adds its events to `events`. Frames without a counterpart in the
    /// protocol have no events; an unreadable frame is logged.
    pub(super) fn frame(&mut self, frame: &StreamEvent, events: &mut Vec<Draft>) {
        let (mode, namespace) = split(&frame.event);
        if let Err(error) = self.convert(mode, namespace, &frame.data, events) {
            tracing::error!(%error, frame = %frame.event, "cannot convert a frame");
        }
    }

    fn convert(
        &mut self,
        mode: &str,
        namespace: Namespace,
        data: &EventData,
        events: &mut Vec<Draft>,
    ) -> Result<(), serde_json::Error> {
        if mode == "messages" {
            events.extend(self.held_state.take());
            self.lifecycle.enter(&namespace, &self.calls, events);
            return self.messages.frame(data, &namespace, events);
        }
        let data = data.clone().into_bytes();
        if mode == "checkpoints" {
            let read: Checkpoint = serde_json::from_slice(&data)?;
            let is_of_state = self
                .held_state
                .as_ref()
                .is_some_and(|held| held.namespace == namespace);
            if !is_of_state {
                events.extend(self.held_state.take());
            }
            self.lifecycle.enter(&namespace, &self.calls, events);
            events.push(Draft::new(
                Channel::Checkpoints,
                namespace,
                &read.position(),
            ));
            events.extend(self.held_state.take());
            return Ok(());
        }
        events.extend(self.held_state.take());
        match mode {
            "metadata" => events.push(self.lifecycle.begun()),
            "error" => self.error = Some(error_text(&data)?),
            "values" => {
                let (state, questions) = questions::split_state(data)?;
                self.ask(questions, events);
                self.lifecycle.enter(&namespace, &self.calls, events);
                self.held_state = Some(Draft::of_json(Channel::Values, namespace, state));
            }
            "updates" => {
                let questions = questions::of_update(&data)?;
                let update = match questions {
                    Some(_) => Bytes::from_static(b"{}"),
                    None => data,
                };
                self.lifecycle.enter(&namespace, &self.calls, events);
                events.push(Draft::of_json(Channel::Updates, namespace, update));
                self.ask(questions, events);
            }
            "custom" => self.custom(namespace, data, events)?,
            "tasks" => {
                self.lifecycle.enter(&namespace, &self.calls, events);
                let ended = self.calls.frame(&data, &namespace, events)?;
                if let Some((inner, end)) = ended {
                    self.lifecycle.close(&inner, end, events);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the last state of a run whose frames are not available.
    pub(super) fn state(&self, state: Bytes) -> Draft {
        Draft::of_json(Channel::Values, Namespace::new(), state)
    }

    /// Returns the last event of a run whose frames are not available.
    pub(super) fn end_as(&self, status: &str, error: Option<String>) -> Option<Draft> {
        let known = ["completed", "failed", "interrupted"];
        let status = known.into_iter().find(|known| *known == status)?;
        Some(self.lifecycle.ended(status, error))
    }

    /// Converts the end of the stream.
    pub(super) fn end(&mut self, kind: TerminalKind) -> Vec<Draft> {
        let mut events: Vec<Draft> = self.held_state.take().into_iter().collect();
        let (nested, status) = match kind {
            TerminalKind::Error => ("failed", "failed"),
            TerminalKind::Cancel => ("completed", "interrupted"),
            TerminalKind::End if self.is_interrupted => ("interrupted", "interrupted"),
            TerminalKind::End => ("completed", "completed"),
        };
        self.lifecycle.close_all(nested, &mut events);
        events.push(self.lifecycle.ended(status, self.error.take()));
        events
    }

    /// Sets the error text of a run without an `error` frame.
    pub(super) fn set_error(&mut self, error: Option<String>) {
        if self.error.is_none() {
            self.error = error;
        }
    }

    fn ask(&mut self, questions: Option<Vec<Value>>, events: &mut Vec<Draft>) {
        let Some(questions) = questions else { return };
        self.is_interrupted = true;
        for question in questions {
            let id = question["id"].as_str().unwrap_or_default().to_owned();
            if id.is_empty() || !self.announced.insert(id.clone()) {
                continue;
            }
            let value = &question["value"];
            // The Python SDK reads `value`, the schema of the protocol names `payload`.
            let data = json!({ "interrupt_id": id, "payload": value, "value": value });
            events.push(Draft::new(Channel::Input, Namespace::new(), &data));
        }
    }

    fn custom(
        &mut self,
        namespace: Namespace,
        data: Bytes,
        events: &mut Vec<Draft>,
    ) -> Result<(), serde_json::Error> {
        self.lifecycle.enter(&namespace, &self.calls, events);
        let read: CustomPayload = serde_json::from_slice(&data)?;
        if let CustomPayload::Output(output) = &read
            && output.kind == "tool_output"
        {
            events.push(tools::output(namespace, &output.tool_call_id, &output.data));
            return Ok(());
        }
        let name = match read {
            CustomPayload::Named { name } => Some(name),
            _ => None,
        };
        events.push(Draft {
            name,
            ..Draft::of_json(Channel::Custom, namespace, data)
        });
        Ok(())
    }
}

/// Splits the name of a frame, such as `values|tools:1|tools:2`.
fn split(name: &str) -> (&str, Namespace) {
    let mut parts = name.split('|');
    let mode = parts.next().unwrap_or_default();
    (mode, parts.map(str::to_owned).collect())
}

fn error_text(data: &[u8]) -> Result<String, serde_json::Error> {
    #[derive(Deserialize)]
    struct Failure {
        #[serde(default)]
        message: String,
    }
    Ok(serde_json::from_slice::<Failure>(data)?.message)
}

/// Payload of a `custom` frame, as far as it is read.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum CustomPayload {
    Output(ToolOutput),
    Named { name: String },
    Other(IgnoredAny),
}

/// Output of a running tool.
#[derive(Debug, Deserialize)]
struct ToolOutput {
    #[serde(rename = "type")]
    kind: String,
    tool_call_id: String,
    data: String,
}

/// Frame of a checkpoint, as far as it is read.
#[derive(Debug, Deserialize)]
struct Checkpoint {
    config: CheckpointConfig,
    parent_config: Option<CheckpointConfig>,
    metadata: CheckpointMetadata,
}

#[derive(Debug, Deserialize)]
struct CheckpointConfig {
    configurable: CheckpointReference,
}

#[derive(Debug, Deserialize)]
struct CheckpointReference {
    checkpoint_id: String,
}

#[derive(Debug, Deserialize)]
struct CheckpointMetadata {
    source: Value,
    step: Value,
}

impl Checkpoint {
    fn position(&self) -> Value {
        let mut position = json!({ "id": self.config.configurable.checkpoint_id });
        if let Some(parent) = &self.parent_config {
            position["parent_id"] = parent.configurable.checkpoint_id.as_str().into();
        }
        position["step"] = self.metadata.step.clone();
        position["source"] = self.metadata.source.clone();
        position
    }
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
