//! Messages: fragments of answers, and whole messages, as sequences of block events.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use harness::runtime::stream_bridge::EventData;
use serde::Serialize;
use serde_json::{Error, Map, Value, json};

use super::blocks::{Block, BlockKind};
use super::received::{Origin, Received, ToolCall, Usage};
use crate::thread_log::event::{Channel, Draft, Namespace};

/// Messages of a run.
#[derive(Debug, Default)]
pub(super) struct Messages {
    open: HashMap<String, OpenMessage>,
    finished: HashSet<String>,
}

/// A message whose end was not received.
#[derive(Debug, Default)]
struct OpenMessage {
    namespace: Namespace,
    blocks: Vec<Block>,
    /// Indices of the blocks of tool calls, by the index of the call.
    calls: HashMap<u64, usize>,
    usage: Option<Usage>,
    metadata: Map<String, Value>,
    /// JSON after the text of a fragment that had nothing but a text. Later text fragments of the
    /// message have the same bytes in memory.
    after_text: Option<Bytes>,
}

/// Received message, with where it was received.
struct Arrival<'a> {
    message: &'a Received<'a>,
    /// JSON after the text, if the message is a fragment with nothing but a text and the frame was
    /// cut there.
    after_text: Option<&'a Bytes>,
    frame: &'a EventData,
    namespace: &'a Namespace,
}

impl Messages {
    /// Converts a `messages` frame: a message or fragment, and its metadata.
    pub(super) fn frame(
        &mut self,
        frame: &EventData,
        namespace: &Namespace,
        events: &mut Vec<Draft>,
    ) -> Result<(), Error> {
        let (head, tail) = (frame.head(), frame.tail());
        let known = self
            .open
            .values_mut()
            .find(|open| open.has_after_text(tail));
        if let Some(open) = known
            && let Ok(text) = Received::text(head)
        {
            open.extend(BlockKind::Text, &text.0, events);
            return Ok(());
        }
        let whole;
        let (message, is_cut) = match Received::read(head) {
            Err(error) if error.is_eof() && !tail.is_empty() => {
                // The frame was cut within the message.
                whole = frame.clone().into_bytes();
                (Received::read(&whole)?, true)
            }
            received => (received?, false),
        };
        let arrival = Arrival {
            message: &message,
            after_text: (is_cut && message.is_text_fragment()).then_some(tail),
            frame,
            namespace,
        };
        match &*message.kind {
            "AIMessageChunk" => self.fragment(&arrival, events),
            "ai" => self.answer(&arrival, events),
            "tool" => {
                tool_result(&message, namespace, events);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn fragment(&mut self, arrival: &Arrival<'_>, events: &mut Vec<Draft>) -> Result<(), Error> {
        let Some(id) = arrival.message.id.as_ref().map(|id| &*id.0) else {
            return Ok(());
        };
        if let Some(message) = self.open.get_mut(id) {
            message.add(arrival.message, events);
            message.after_text = arrival.after_text.or(message.after_text.as_ref()).cloned();
        } else if self.finished.contains(id) {
            return Ok(());
        } else {
            let message = OpenMessage::start(id, arrival, events)?;
            self.open.insert(id.to_owned(), message);
        }
        if arrival.message.is_last()
            && let Some(message) = self.open.remove(id)
        {
            message.finish(events);
            self.finished.insert(id.to_owned());
        }
        Ok(())
    }

    /// Converts a whole answer. It completes the message of fragments with its id.
    fn answer(&mut self, arrival: &Arrival<'_>, events: &mut Vec<Draft>) -> Result<(), Error> {
        let Some(id) = self.unfinished(arrival.message) else {
            return Ok(());
        };
        let mut message = match self.open.remove(id) {
            Some(message) => message,
            None => {
                let mut message = OpenMessage::start(id, arrival, events)?;
                for call in &arrival.message.tool_calls {
                    message.add_call(call, events);
                }
                message
            }
        };
        message.usage = arrival.message.usage_metadata.or(message.usage);
        message.finish(events);
        self.finished.insert(id.to_owned());
        Ok(())
    }

    /// Returns the id of a message whose end was not received before.
    fn unfinished<'a>(&self, received: &'a Received<'_>) -> Option<&'a str> {
        let id = &*received.id.as_ref()?.0;
        (!self.finished.contains(id)).then_some(id)
    }
}

impl OpenMessage {
    /// Starts a message with the content of the first fragment or of the whole message.
    fn start(id: &str, arrival: &Arrival<'_>, events: &mut Vec<Draft>) -> Result<Self, Error> {
        let origin = Origin::read(arrival.frame)?;
        let mut metadata = json!({ "langgraph_node": origin.langgraph_node });
        for (key, value) in [
            ("model", &origin.model_name),
            ("provider", &origin.ls_provider),
        ] {
            if let Some(value) = value {
                metadata[key] = value.as_str().into();
            }
        }
        let mut message = Self {
            namespace: arrival.namespace.clone(),
            after_text: arrival.after_text.cloned(),
            ..Self::default()
        };
        let data =
            json!({ "event": "message-start", "role": "ai", "id": id, "metadata": metadata });
        message.send(&data, events);
        message.add(arrival.message, events);
        Ok(message)
    }

    /// Reports whether `tail` is the known JSON after a text, in memory. Does not read it.
    fn has_after_text(&self, tail: &Bytes) -> bool {
        let known = self.after_text.as_ref();
        known.is_some_and(|known| known.as_ptr() == tail.as_ptr() && known.len() == tail.len())
    }

    fn send(&self, data: &impl Serialize, events: &mut Vec<Draft>) {
        let namespace = self.namespace.clone();
        events.push(Draft::new(Channel::Messages, namespace, data));
    }

    /// Adds the content of a fragment, except whole tool calls.
    fn add(&mut self, received: &Received<'_>, events: &mut Vec<Draft>) {
        let reasoning = &received.additional_kwargs.reasoning_content.0;
        self.extend(BlockKind::Reasoning, reasoning, events);
        self.extend(BlockKind::Text, &received.content.0, events);
        for fragment in &received.tool_call_chunks {
            let call = fragment.index.unwrap_or(self.calls.len() as u64);
            let index = match self.calls.get(&call) {
                Some(index) => *index,
                None => {
                    let index = self.begin(
                        BlockKind::Call {
                            id: fragment.id.clone().unwrap_or_default(),
                            name: fragment.name.clone().unwrap_or_default(),
                        },
                        events,
                    );
                    self.calls.insert(call, index);
                    index
                }
            };
            self.append(index, fragment.args.as_deref().unwrap_or_default(), events);
        }
        if let Some(added) = received.usage_metadata {
            let usage = self.usage.get_or_insert_default();
            usage.input_tokens += added.input_tokens;
            usage.output_tokens += added.output_tokens;
            usage.total_tokens += added.total_tokens;
        }
        if !received.response_metadata.is_empty() {
            self.metadata.extend(received.response_metadata.clone());
        }
    }

    fn add_call(&mut self, call: &ToolCall, events: &mut Vec<Draft>) {
        let kind = BlockKind::Call {
            id: call.id.clone().unwrap_or_default(),
            name: call.name.clone(),
        };
        let index = self.begin(kind, events);
        self.append(index, &call.args.to_string(), events);
    }

    /// Appends to the newest block if it is of this kind, otherwise to a new one.
    fn extend(&mut self, kind: BlockKind, added: &str, events: &mut Vec<Draft>) {
        if added.is_empty() {
            return;
        }
        let is_newest = self
            .blocks
            .last()
            .is_some_and(|block| block.is_open && block.kind == kind);
        let index = if is_newest {
            self.blocks.len() - 1
        } else {
            self.begin(kind, events)
        };
        self.append(index, added, events);
    }

    /// Starts a block. Text and reasoning end before it; tool calls overlap.
    fn begin(&mut self, kind: BlockKind, events: &mut Vec<Draft>) -> usize {
        let newest = self.blocks.len().checked_sub(1);
        if let Some(newest) = newest
            && self.blocks[newest].is_open
            && !matches!(self.blocks[newest].kind, BlockKind::Call { .. })
        {
            let data = self.blocks[newest].finish(newest);
            self.send(&data, events);
        }
        let (block, index) = (Block::new(kind), self.blocks.len());
        self.send(&block.start(index), events);
        self.blocks.push(block);
        index
    }

    fn append(&mut self, index: usize, added: &str, events: &mut Vec<Draft>) {
        if added.is_empty() {
            return;
        }
        let data = self.blocks[index].delta(index, added);
        self.send(&data, events);
    }

    fn finish(mut self, events: &mut Vec<Draft>) {
        for index in 0..self.blocks.len() {
            if self.blocks[index].is_open {
                let data = self.blocks[index].finish(index);
                self.send(&data, events);
            }
        }
        let mut data = json!({ "event": "message-finish", "metadata": self.metadata });
        if let Some(usage) = self.usage {
            data["usage"] = json!(usage);
        }
        self.send(&data, events);
    }
}

/// Converts the result of a tool call: a message in the namespace of the call.
fn tool_result(received: &Received<'_>, namespace: &Namespace, events: &mut Vec<Draft>) {
    let call = received.tool_call_id.as_deref().unwrap_or_default();
    let message = OpenMessage {
        namespace: [&namespace[..], &[format!("tools:{call}")]].concat(),
        ..OpenMessage::default()
    };
    let id = match &received.id {
        Some(id) => id.0.clone().into_owned(),
        None => format!("tool-{call}"),
    };
    let start = json!({
        "event": "message-start", "role": "tool", "id": id, "tool_call_id": call, "metadata": {},
    });
    message.send(&start, events);
    let mut block = Block::new(BlockKind::Text);
    message.send(&block.start(0), events);
    let text = &*received.content.0;
    if !text.is_empty() {
        let delta = block.delta(0, text);
        message.send(&delta, events);
    }
    let finish = block.finish(0);
    message.send(&finish, events);
    message.finish(events);
}
