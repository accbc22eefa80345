//! Web tools of the configured entries.

use std::sync::Arc;

use harness::config::ToolConfig;
use harness::tools::DynTool;
use harness::tools::web::{WebToolFactory, name_of};

/// Reports whether an entry names a web tool.
pub(super) fn is_web(entry: &ToolConfig) -> bool {
    name_of(&entry.implementation).is_some()
}

/// Returns the web tool of an entry, if it is one and can be created.
pub(super) fn tool(
    factory: Option<&WebToolFactory>,
    entry: &ToolConfig,
) -> Option<Arc<dyn DynTool>> {
    match factory?.tool(entry)? {
        Ok(tool) => {
            let name = &tool.schema().name;
            if *name != entry.name {
                tracing::warn!(entry = %entry.name, tool = %name, "tool is offered under its own name instead of the configured one");
            }
            Some(tool)
        }
        Err(error) => {
            tracing::error!(%error, "a web tool is disabled");
            None
        }
    }
}
