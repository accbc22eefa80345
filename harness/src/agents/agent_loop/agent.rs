//! Agent that runs the loop; built once and shared by all of its runs.

use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::Value;
use uuid::Uuid;

use super::assembly::{AgentDependencies, Assembly};
use super::driver::drive;
use super::graph::graph_of;
use super::machine::{LoopMachine, RunBounds};
use crate::messages::Message;
use crate::runtime::agent::{
    Agent, AgentGraph, AgentInput, AgentStream, EventReceiver, InputFacts, RunContext,
};
use crate::runtime::runs::GotoTarget;
use crate::state::{StateUpdate, ThreadState};

/// Agent that runs the loop. Clones share the dependencies.
#[derive(Debug, Clone)]
pub struct LoopAgent(Arc<Assembly>);

impl LoopAgent {
    /// Creates an agent with these dependencies.
    pub fn new(dependencies: AgentDependencies) -> Self {
        Self(Arc::new(Assembly::new(dependencies)))
    }
}

impl Agent for LoopAgent {
    fn stream(&self, input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
        AgentStream::new(events, drive(self.0.clone(), input, ctx).boxed())
    }

    fn settle(&self, state: &ThreadState, partial: Option<Message>) -> StateUpdate {
        let mut update = StateUpdate::default();
        for middleware in self.0.stack.iter() {
            let more = middleware.settle(state, partial.as_ref());
            update.messages.extend(more.messages);
            update.channels.extend(more.channels);
        }
        update.messages.splice(0..0, partial);
        update
    }

    fn complete_input(&self, message: &Message, facts: &InputFacts) -> Option<Message> {
        self.0.stack.iter().fold(None, |completed, middleware| {
            let more = middleware.complete_input(completed.as_ref().unwrap_or(message), facts);
            more.or(completed)
        })
    }

    fn nodes(&self) -> Vec<String> {
        self.0.nodes.names()
    }

    fn parked(&self, visits: Vec<GotoTarget>, seed: Uuid) -> Option<Value> {
        let mut machine = LoopMachine::new(self.0.nodes.clone(), RunBounds::default(), seed);
        machine.go_to(visits).ok().map(|()| machine.save())
    }

    fn graph(&self) -> AgentGraph {
        graph_of(
            &self.0.nodes,
            self.0.tools.names().map(str::to_owned).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_future<F: Future>(
        _: impl FnOnce(Arc<Assembly>, AgentInput, RunContext) -> F,
    ) -> usize {
        size_of::<F>()
    }

    #[test]
    fn future_of_a_run_does_not_contain_its_state() {
        let size = size_of_future(drive);
        assert!(size <= 512, "{size} bytes");
    }
}
