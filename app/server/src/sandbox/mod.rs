//! Mounts and variables of command sandboxes, shared by all kinds of sandboxes.

pub(crate) mod mounts;
pub(crate) mod variables;

use std::sync::Arc;

use harness::sandbox::CommandSandbox;

/// Command sandbox, or why it is unavailable.
pub(crate) type OpenedSandbox = Result<Arc<dyn CommandSandbox>, String>;
