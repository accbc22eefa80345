//! Tools: the typed trait authors write, its erased twin, the registry, the built-in ones, and those of the web.

pub mod approval;
pub mod builtins;
pub mod deferred;
mod erased;
mod error;
pub(crate) mod live;
mod output;
mod registry;
mod source;
mod tool;
#[cfg(feature = "web")]
pub mod web;

pub use erased::{DynTool, erase};
pub use error::ToolError;
pub use output::{ToolControl, ToolOutput};
pub use registry::ToolRegistry;
pub use source::{ToolSet, ToolSource};
pub use tool::{Effect, Tool, ToolContext};
