//! The contract of agent adapters: how a flow calls the agent behind a node.

mod contract;
mod error;
mod invocation;
mod registry;
mod result;

pub use crate::schema::TurnMode;
pub use contract::{
    AdapterContext, AdapterFactory, AdapterMetadata, AgentAdapter, CONTRACT_VERSION, Capability,
    ConfigFinding, DeltaSink, TurnDelta, TurnEffect, TurnRuntime,
};
pub use error::{ErrorCategory, FlowError, SESSION_NOT_FOUND};
pub use invocation::{
    AgentInvocation, ExpectedOutput, InvocationId, PromptSegment, SegmentScope, SessionContext,
    SessionId, TurnMessage, TurnRole,
};
pub use registry::AdapterRegistry;
pub use result::{AgentTurnResult, TurnStatus, TurnWarning, Usage};
