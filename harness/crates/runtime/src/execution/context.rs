//! Context of a run as its agent sees it.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::agent::{EventSink, RunContext};
use crate::execution::Execution;

impl Execution {
    pub(super) fn context(&self, sink: EventSink) -> RunContext {
        let request = self.plan.request();
        RunContext {
            thread_id: self.plan.thread_id().clone(),
            run_id: self.plan.run_id().clone(),
            actor: self.plan.actor().clone(),
            options: Arc::new(self.visible_options()),
            tags: request.config.tags.clone(),
            namespace: Arc::from(""),
            recursion_limit: self.plan.recursion_limit(),
            interrupt_before: request.interrupt_before.clone(),
            interrupt_after: request.interrupt_after.clone(),
            clock: self.ports.clock.clone(),
            ids: self.ports.ids.clone(),
            sink,
            calls: self.calls.clone(),
            token: self.active.token.child_token(),
        }
    }

    /// Returns the options of the request with the ids of the run. The request cannot set them.
    fn visible_options(&self) -> Map<String, Value> {
        let request = self.plan.request();
        let named = |key: &str| match request.metadata.get(key) {
            Some(Value::String(id)) => id.clone(),
            _ => request.assistant.clone(),
        };
        let ids = [
            self.plan.thread_id().to_string(),
            self.plan.run_id().to_string(),
            named("assistant_id"),
            named("graph_id"),
        ];
        let mut options = request.config.options.clone();
        let ids = RunContext::ID_OPTIONS.into_iter().zip(ids);
        options.extend(ids.map(|(key, id)| (key.to_owned(), id.into())));
        options
    }
}
