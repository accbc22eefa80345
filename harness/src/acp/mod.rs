//! Agents in external programs that speak the Agent Client Protocol (ACP). A model delegates tasks
//! to them.
//!
//! A call starts the program, runs one session and then terminates the program with all its
//! descendants. The agent works in the thread's `acp-workspace`, which models can read but not
//! write.

mod error;
mod limits;
mod mcp_servers;
mod not_found;
mod policy;
mod session;
mod tool;
mod transport;
mod updates;

pub use not_found::missing_program;
pub use tool::{AcpContext, InvokeAcpAgent};

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::acp::AcpContext as AcpSurroundings;
