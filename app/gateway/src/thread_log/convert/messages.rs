//! Messages: fragments of answers, and whole messages, as sequences of block events.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::blocks::{Block, BlockKind, text_of};
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
}

/// Token counts.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
struct Usage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    total_tokens: u64,
}

/// A message or fragment, as far as it is read.
#[derive(Debug, Deserialize)]
struct Received {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    additional_kwargs: Kwargs,
    #[serde(default)]
    response_metadata: Map<String, Value>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
    #[serde(default)]
    tool_call_chunks: Vec<CallFragment>,
    usage_metadata: Option<Usage>,
    chunk_position: Option<String>,
    tool_call_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Kwargs {
    #[serde(default)]
    reasoning_content: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ToolCall {
    id: Option<String>,
    name: String,
    #[serde(default)]
    args: Value,
}

#[derive(Debug, Deserialize)]
struct CallFragment {
    id: Option<String>,
    name: Option<String>,
    args: Option<String>,
    index: Option<u64>,
}

/// Metadata of a frame, as far as it is read.
#[derive(Debug, Deserialize)]
struct Origin {
    #[serde(default)]
    langgraph_node: String,
    model_name: Option<String>,
    ls_provider: Option<String>,
}

impl Messages {
    /// Converts a `messages` frame: a message or fragment, and its metadata.
    pub(super) fn frame(
        &mut self,
        data: &[u8],
        namespace: &Namespace,
        events: &mut Vec<Draft>,
    ) -> Result<(), serde_json::Error> {
        let (received, origin): (Received, Origin) = serde_json::from_slice(data)?;
        match received.kind.as_str() {
            "AIMessageChunk" => self.fragment(&received, &origin, namespace, events),
            "ai" => self.answer(&received, &origin, namespace, events),
            "tool" => tool_result(&received, namespace, events),
            _ => {}
        }
        Ok(())
    }

    fn fragment(
        &mut self,
        received: &Received,
        origin: &Origin,
        namespace: &Namespace,
        events: &mut Vec<Draft>,
    ) {
        let Some(id) = received.id.clone().filter(|id| !self.finished.contains(id)) else {
            return;
        };
        let message = self
            .open
            .entry(id.clone())
            .or_insert_with(|| OpenMessage::start(&id, origin, namespace, events));
        message.add(received, events);
        if received.chunk_position.is_some()
            && let Some(message) = self.open.remove(&id)
        {
            message.finish(events);
            self.finished.insert(id);
        }
    }

    /// Converts a whole answer. It completes the message of fragments with its id.
    fn answer(
        &mut self,
        received: &Received,
        origin: &Origin,
        namespace: &Namespace,
        events: &mut Vec<Draft>,
    ) {
        let Some(id) = received.id.clone().filter(|id| !self.finished.contains(id)) else {
            return;
        };
        let mut message = self.open.remove(&id).unwrap_or_else(|| {
            let mut message = OpenMessage::start(&id, origin, namespace, events);
            message.add(received, events);
            for call in &received.tool_calls {
                message.add_call(call, events);
            }
            message
        });
        message.usage = received.usage_metadata.or(message.usage);
        message.finish(events);
        self.finished.insert(id);
    }
}

impl OpenMessage {
    fn start(id: &str, origin: &Origin, namespace: &Namespace, events: &mut Vec<Draft>) -> Self {
        let mut metadata = json!({ "langgraph_node": origin.langgraph_node });
        for (key, value) in [
            ("model", &origin.model_name),
            ("provider", &origin.ls_provider),
        ] {
            if let Some(value) = value {
                metadata[key] = value.as_str().into();
            }
        }
        let message = Self {
            namespace: namespace.clone(),
            ..Self::default()
        };
        let data =
            json!({ "event": "message-start", "role": "ai", "id": id, "metadata": metadata });
        message.send(&data, events);
        message
    }

    fn send(&self, data: &impl Serialize, events: &mut Vec<Draft>) {
        let namespace = self.namespace.clone();
        events.push(Draft::new(Channel::Messages, namespace, data));
    }

    /// Adds the content of a fragment, except whole tool calls.
    fn add(&mut self, received: &Received, events: &mut Vec<Draft>) {
        let reasoning = received.additional_kwargs.reasoning_content.as_deref();
        self.extend(BlockKind::Reasoning, reasoning.unwrap_or_default(), events);
        self.extend(BlockKind::Text, &text_of(&received.content), events);
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
        self.metadata.extend(received.response_metadata.clone());
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
fn tool_result(received: &Received, namespace: &Namespace, events: &mut Vec<Draft>) {
    let call = received.tool_call_id.as_deref().unwrap_or_default();
    let message = OpenMessage {
        namespace: [&namespace[..], &[format!("tools:{call}")]].concat(),
        ..OpenMessage::default()
    };
    let id = received
        .id
        .clone()
        .unwrap_or_else(|| format!("tool-{call}"));
    let start = json!({
        "event": "message-start", "role": "tool", "id": id, "tool_call_id": call, "metadata": {},
    });
    message.send(&start, events);
    let mut block = Block::new(BlockKind::Text);
    message.send(&block.start(0), events);
    let text = text_of(&received.content);
    if !text.is_empty() {
        let delta = block.delta(0, &text);
        message.send(&delta, events);
    }
    let finish = block.finish(0);
    message.send(&finish, events);
    message.finish(events);
}
