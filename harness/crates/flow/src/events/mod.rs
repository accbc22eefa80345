//! Events of a run, and the state of nodes that follows from them.

mod compact;
mod event;
mod node_state;

pub use compact::compact;
pub use event::{EVENT_SCHEMA_VERSION, EventBody, FlowEvent, FlowEventSink};
pub use node_state::{NodeState, NodeStates, NodeStatus};
