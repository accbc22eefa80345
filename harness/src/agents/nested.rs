//! An agent inside a tool call of another: its events travel under the call's namespace, and nothing of it is saved.

use std::sync::Arc;

use futures_util::StreamExt;

use crate::messages::Message;
use crate::runtime::agent::{Agent, AgentError, AgentEvent, AgentInput, AgentStart, EventSink, RunContext};
use crate::runtime::runs::NodeSelector;
use crate::state::{StateUpdate, ThreadState};
use crate::tools::ToolContext;

/// Runs `agent` on these messages to its end, and gives the state it reached. Viewers of subgraphs see its events under
/// `node:task id` of the call.
pub async fn run_nested(
    agent: &dyn Agent,
    messages: impl IntoIterator<Item = Message>,
    ctx: &ToolContext,
) -> Result<Arc<ThreadState>, AgentError> {
    let mut state = ThreadState::default();
    state.apply(StateUpdate::messages(messages), &*ctx.run.ids)?;
    let (sink, events) = EventSink::channel();
    let namespace: Arc<str> = ctx.namespace.as_str().into();
    let mut reached = Arc::new(state.clone());
    let input = AgentInput { state, start: AgentStart::Fresh, machine: None, step: 0 };
    let mut said = agent.stream(
        input,
        RunContext { sink, interrupt_before: NodeSelector::None, interrupt_after: NodeSelector::None, ..ctx.run.clone() },
        events,
    );
    while let Some(event) = said.next().await {
        match event? {
            AgentEvent::Done(_) => break,
            event => {
                if let AgentEvent::Step(step) = &event {
                    reached = step.state.clone();
                }
                ctx.run.sink.emit(AgentEvent::Nested(namespace.clone(), Box::new(event)));
            }
        }
    }
    Ok(reached)
}
