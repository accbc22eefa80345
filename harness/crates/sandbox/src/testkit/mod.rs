//! Contract suite of command sandboxes, and archives and names that implementations must survive.

pub mod command_sandbox;
mod hostile_names;
pub mod skill_archives;

pub use hostile_names::hostile_names;
