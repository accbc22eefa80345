//! Adds tools that appear and disappear at run time to an agent, within the size limit of a
//! request.

use std::sync::Arc;

use super::builtins::ToolSearch;
use super::deferred::{DeferredTools, schema_json};
use super::erased::{DynTool, erase};
use super::{ToolRegistry, ToolSet};
use crate::config::ToolSearchConfig;

/// Maximum number of dynamic tools that a model sees without a search.
const MAX_VISIBLE: usize = 100;
/// Maximum size of the schemas of visible dynamic tools, in bytes.
const MAX_SCHEMA_BYTES: usize = 256 * 1024;

/// Adds the tools of `live` that the agent may use. A tool is skipped if the agent already has one
/// of that name.
///
/// If the configuration enables tool search, all added tools are deferred behind `tool_search`;
/// otherwise only those that do not fit into a request.
pub(crate) fn add_dynamic(
    tools: &mut ToolRegistry,
    live: &ToolSet,
    search: &ToolSearchConfig,
    may_use: impl Fn(&str) -> bool,
) {
    let is_new = |tool: &&Arc<dyn DynTool>| {
        tools.get(&tool.schema().name).is_none() && may_use(&tool.schema().name)
    };
    let added: Vec<_> = live.tools().iter().filter(is_new).cloned().collect();
    let seen = if search.enabled {
        0
    } else {
        visible_count(&added)
    };
    if seen < added.len() {
        let catalog = Arc::new(DeferredTools::new(
            added[seen..].iter().map(|tool| tool.schema().clone()),
        ));
        tools.add(erase(ToolSearch {
            catalog: catalog.clone(),
        }));
        tools.defer(catalog);
    }
    tools.extend(added);
}

/// Number of leading tools that fit into every request.
fn visible_count(tools: &[Arc<dyn DynTool>]) -> usize {
    let mut bytes = 0;
    let fits = |tool: &&Arc<dyn DynTool>| {
        bytes += schema_json(tool.schema()).to_string().len();
        bytes <= MAX_SCHEMA_BYTES
    };
    tools.iter().take(MAX_VISIBLE).take_while(fits).count()
}

#[cfg(test)]
#[path = "dynamic_tests.rs"]
mod tests;
