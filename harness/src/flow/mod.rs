//! Flows (`deerflow-flow`), the adapter kinds that execute turns with the agents of this crate, and
//! the registry of all kinds.

#[cfg(feature = "acp")]
mod acp_agent;
mod adapter_kinds;
mod deerflow;
mod loader;

#[cfg(feature = "acp")]
pub use acp_agent::{AcpFactory, CurrentAcpAgents};
pub use adapter_kinds::{FlowKinds, flow_registry};
pub use deerflow::{AgentTarget, DeerflowFactory, NodeAgent, NodeAgents, ResolvedAgents};
pub use deerflow_flow::*;
pub use loader::FlowLoader;
#[cfg(feature = "http")]
pub use loader::{CurrentHosts, HttpLoader};
