//! Web tools of a configuration, with keys from the environment.

use std::sync::Arc;

use harness::config::ToolConfig;
use harness::config_file::Environment;
use harness::tools::DynTool;
use harness::tools::web::{WebToolFactory, name_of};

/// Returns the factory of web tools; if it cannot be created, logs the error and returns `None`.
pub(super) fn factory(environment: &Environment) -> Option<WebToolFactory> {
    let variables = WebToolFactory::VARIABLES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), environment.filled(name)?.to_owned())));
    match WebToolFactory::new(variables.collect()) {
        Ok(factory) => Some(factory),
        Err(error) => {
            tracing::error!(%error, "web tools are disabled: cannot create an HTTP client");
            None
        }
    }
}

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
