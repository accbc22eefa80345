//! Tools: the typed trait for authors, its type-erased counterpart, the registry, the built-in
//! tools and the web tools.

pub mod approval;
pub mod builtins;
pub mod deferred;
mod erased;
mod error;
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
