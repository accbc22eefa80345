//! Frames of nested agents, each encoded under its namespace.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::{ModeEncoder, NestedEncoder, StreamOptions};
use crate::agent::AgentEvent;
use crate::encoding::frames::Frame;

impl ModeEncoder {
    /// Encodes a nested agent's event under its namespace.
    pub(super) fn nested(
        &mut self,
        namespace: &Arc<str>,
        event: &AgentEvent,
        frames: &mut Vec<Frame>,
    ) {
        let from = frames.len();
        let nested = match self.nested.entry(namespace.clone()) {
            Entry::Occupied(occupied) => occupied.into_mut(),
            Entry::Vacant(vacant) => {
                let options = StreamOptions {
                    echo_input: false,
                    ..self.options
                };
                let events = self
                    .events
                    .as_ref()
                    .and_then(|events| events.inside(namespace));
                let encoder = Self {
                    events,
                    ..Self::of(options, self.clock.clone(), self.run.clone())
                };
                vacant.insert(NestedEncoder {
                    encoder: Box::new(encoder),
                    reached: None,
                })
            }
        };
        if let AgentEvent::Step(step) = event
            && nested.reached.replace(step.state.clone()).is_none()
        {
            nested.encoder.begin(|| &step.state, frames);
            nested.encoder.values(&step.state, &[], frames);
        }
        nested.encoder.encode(event, frames);
        if let (AgentEvent::Done(_), Some(reached)) = (event, &nested.reached) {
            nested.encoder.end(reached, frames);
            self.nested.remove(namespace);
        }
        for frame in &mut frames[from..] {
            // The modes `messages` and `events` have no namespaces.
            if !frame.event.starts_with("messages/") && frame.event != "events" {
                let (mode, deeper) = frame
                    .event
                    .split_at(frame.event.find('|').unwrap_or(frame.event.len()));
                frame.event = Cow::Owned(format!("{mode}|{namespace}{deeper}"));
            }
        }
    }
}
