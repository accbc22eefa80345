//! The web tools of a configuration, with keys from the environment.

use std::sync::Arc;

use harness::config::ToolConfig;
use harness::config_file::Environment;
use harness::tools::DynTool;
use harness::tools::web::{WebKit, name_of};

/// The means of web tools; without them, which the log tells, there are none.
pub(super) fn kit(environment: &Environment) -> Option<WebKit> {
    let variables = WebKit::VARIABLES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), environment.filled(name)?.to_owned())));
    match WebKit::new(variables.collect()) {
        Ok(kit) => Some(kit),
        Err(error) => {
            tracing::error!(%error, "there are no web tools: no HTTP client can be made");
            None
        }
    }
}

/// Whether an entry names a web tool.
pub(super) fn is_web(entry: &ToolConfig) -> bool {
    name_of(&entry.implementation).is_some()
}

/// The tool of an entry that names a web tool, if it can be made.
pub(super) fn tool(kit: Option<&WebKit>, entry: &ToolConfig) -> Option<Arc<dyn DynTool>> {
    match kit?.tool(entry)? {
        Ok(tool) => {
            let name = &tool.schema().name;
            if *name != entry.name {
                tracing::warn!(entry = %entry.name, tool = %name, "agents know this tool by its own name");
            }
            Some(tool)
        }
        Err(error) => {
            tracing::error!(%error, "a web tool is left out");
            None
        }
    }
}
