//! Command sandboxes as configured under `sandbox`.

pub(crate) mod bubblewrap;
pub(crate) mod containers;
pub(crate) mod mounts;
pub(crate) mod variables;

use std::sync::Arc;

use harness::agents::lead::kind_of;
use harness::config::AppConfig;
use harness::sandbox::CommandSandbox;

/// Command sandbox, or why it is unavailable.
pub(crate) type OpenedSandbox = Result<Arc<dyn CommandSandbox>, String>;

/// Reports whether an agent could run commands.
pub(crate) fn is_configured(config: &AppConfig) -> bool {
    config.tools.iter().any(|tool| kind_of(tool) == "bash")
}
