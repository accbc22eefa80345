//! Collects the last title of a run.

use serde_json::Value;

use crate::agent::AgentEvent;

/// Last non-empty `title` in state updates and custom events.
#[derive(Debug, Default)]
pub(crate) struct RunTitleCallback(Option<String>);

impl RunTitleCallback {
    pub(crate) fn on_event(&mut self, event: &AgentEvent) {
        let title = match event {
            AgentEvent::Step(step) => step
                .update
                .as_ref()
                .and_then(|update| update.channels.get("title")),
            AgentEvent::Custom(payload) => payload.get("title"),
            _ => None,
        };
        if let Some(title) = title
            .and_then(Value::as_str)
            .filter(|title| !title.is_empty())
        {
            self.0 = Some(title.to_owned());
        }
    }

    pub(crate) fn title(&self) -> Option<String> {
        self.0.clone()
    }
}
