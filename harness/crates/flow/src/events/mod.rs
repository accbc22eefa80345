//! Events of a run, and the state of nodes that follows from them.

mod compact;
mod event;
mod node_state;
mod node_states;
mod payload;
mod recorded;
mod traces;

pub use compact::compact;
pub use event::{EVENT_SCHEMA_VERSION, EventBody, FlowEvent, FlowEventSink};
pub use node_state::{
    NodeIdentity, NodeInputs, NodeOutputs, NodeState, NodeStatus, NodeTimes, NodeTrace, VisitRecord,
};
pub use node_states::NodeStates;
