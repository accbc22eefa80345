//! Agents that are programs of their own and speak the Agent Client Protocol (ACP), which a model hands tasks to.
//!
//! A call starts the program, has one conversation with it and ends it with everything that it started. It works in the thread's
//! `acp-workspace`, which models read and never write.

mod error;
mod handed;
mod link;
mod missing;
mod policy;
mod said;
mod talk;
mod tool;

pub use missing::missing_program;
pub use tool::{AcpSurroundings, InvokeAcpAgent};
