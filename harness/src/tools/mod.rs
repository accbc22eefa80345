//! Tools: the typed trait authors write, its erased twin, the registry, and the built-in ones.

pub mod builtins;
mod erased;
mod error;
mod output;
mod registry;
mod tool;

pub use erased::{DynTool, erase};
pub use error::ToolError;
pub use output::{ToolControl, ToolOutput};
pub use registry::ToolRegistry;
pub use tool::{Effect, Tool, ToolContext};
