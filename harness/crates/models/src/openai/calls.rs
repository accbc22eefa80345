//! Assembles fragments of tool calls: finds the call of each fragment and repairs missing indices,
//! ids and names.

use serde_json::{Map, Value};

use super::event::{CallDelta, FunctionDelta};
use deerflow_core::messages::{MessageChunk, ToolCall, ToolCallChunk};

/// Maximum number of tool calls in one answer. More are an error of the provider.
const MAX_CALLS: usize = 1024;

/// Maximum length of a call's id that the API accepts.
pub(super) const MAX_ID_CHARS: usize = 40;

/// Key of the extra fields of a message's calls in its `additional_kwargs`.
pub(super) const CALL_EXTRAS_KWARG: &str = "tool_call_extras";

/// Calls of one answer, in the order of their first fragments.
#[derive(Debug, Default)]
pub(super) struct CallTable {
    slots: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Index that the provider sent.
    index: Option<u64>,
    id: Option<String>,
    name: Option<String>,
    /// Arguments that arrived before the name.
    buffered: String,
    /// `true` if a piece with name and id was emitted.
    announced: bool,
    /// Fields that the provider requires back with the call.
    extras: Map<String, Value>,
}

/// Error: the answer exceeds [`MAX_CALLS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyCalls;

impl CallTable {
    /// Reports whether no call has begun.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds a fragment and appends its pieces to `chunk`. Only the first piece of a call contains
    /// name and id, however often the provider repeats them. A call is announced when its name is
    /// known.
    pub(super) fn add(
        &mut self,
        mut fragment: CallDelta,
        chunk: &mut MessageChunk,
    ) -> Result<(), TooManyCalls> {
        let extras = fragment.take_extras();
        let id = fragment.id.filter(|id| !id.is_empty());
        let mut function = fragment.function.unwrap_or_default();
        let name = function.name.take().filter(|name| !name.is_empty());
        let at = self
            .find(fragment.index, id.as_deref(), name.as_deref())
            .unwrap_or(self.slots.len());
        if at >= MAX_CALLS {
            return Err(TooManyCalls);
        }
        if at == self.slots.len() {
            self.slots.push(Slot {
                index: fragment.index,
                ..Slot::default()
            });
        }
        let slot = &mut self.slots[at];
        slot.id = slot.id.take().or(id);
        slot.name = slot.name.take().or(name);
        slot.extras.extend(extras);
        slot.accept(at, function, chunk);
        Ok(())
    }

    /// Announces the calls that never got a name; their results report that to the model. Adds the
    /// extra fields that the provider requires back with its calls, by call id.
    pub(super) fn close(&mut self, chunk: &mut MessageChunk) {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if !slot.announced {
                slot.announce(at, String::new(), chunk);
            }
        }
        let extras = |slot: &mut Slot| {
            Some((
                slot.id.clone()?,
                Value::Object(std::mem::take(&mut slot.extras)),
            ))
        };
        let with_extras = self.slots.iter_mut().filter(|slot| !slot.extras.is_empty());
        let extras: Map<String, Value> = with_extras.filter_map(extras).collect();
        if !extras.is_empty() {
            chunk
                .additional_kwargs
                .insert(CALL_EXTRAS_KWARG.to_owned(), Value::Object(extras));
        }
    }

    /// Returns the call that a fragment continues. A second id with a name starts a new call even
    /// under a used index, because some servers number every parallel call 0. A name under a new
    /// index also starts a new call, even with a used id, because some servers send the same id for
    /// all calls.
    fn find(&self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        if let Some(index) = index {
            let Some(at) = self
                .slots
                .iter()
                .rposition(|slot| slot.index == Some(index))
            else {
                return if name.is_some() {
                    None
                } else {
                    id.and_then(|_| self.position_of(id))
                };
            };
            let other =
                matches!((id, &self.slots[at].id), (Some(new), Some(known)) if new != known);
            return if other && name.is_some() {
                self.position_of(id)
            } else {
                Some(at)
            };
        }
        match (id, name) {
            (Some(_), _) => self.position_of(id),
            (None, Some(_)) => None,
            (None, None) => self.slots.len().checked_sub(1),
        }
    }

    fn position_of(&self, id: Option<&str>) -> Option<usize> {
        self.slots.iter().rposition(|slot| slot.id.as_deref() == id)
    }
}

impl Slot {
    fn accept(&mut self, at: usize, function: FunctionDelta, chunk: &mut MessageChunk) {
        let args = function.argument_text();
        if self.announced {
            if !args.is_empty() {
                chunk.tool_call_chunks.push(piece(at, None, None, args));
            }
        } else if self.name.is_some() {
            self.announce(at, args, chunk);
        } else {
            self.buffered.push_str(&args);
        }
    }

    fn announce(&mut self, at: usize, args: String, chunk: &mut MessageChunk) {
        self.announced = true;
        let id = self
            .id
            .get_or_insert_with(|| format!("call_{}_{at}", chunk.id))
            .clone();
        let name = self.name.clone().unwrap_or_default();
        let args = std::mem::take(&mut self.buffered) + &args;
        chunk
            .tool_calls
            .push(ToolCall::new(id.clone(), name.clone(), Map::new()));
        chunk
            .tool_call_chunks
            .push(piece(at, Some(name), Some(id), args));
    }
}

fn piece(at: usize, name: Option<String>, id: Option<String>, args: String) -> ToolCallChunk {
    // `at` is below `MAX_CALLS`.
    ToolCallChunk {
        name,
        args: Some(args),
        id,
        index: at as u32,
        kind: "tool_call_chunk",
    }
}
