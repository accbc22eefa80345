//! Tools of an agent that appear and disappear at run time: those that fit into a request are
//! visible, the others are deferred, and its system prompt lists their names.

use std::sync::Arc;

use crate::config::ToolSearchConfig;
use crate::tools::builtins::ToolSearch;
use crate::tools::deferred::{DeferredTools, schema_json};
use crate::tools::{DynTool, ToolRegistry, ToolSet, erase};

/// Maximum number of dynamic tools that a model sees without a search.
const MAX_VISIBLE: usize = 100;
/// Maximum size of the schemas of visible dynamic tools, in bytes.
const MAX_SCHEMA_BYTES: usize = 256 * 1024;
/// Maximum total length of the names of deferred tools in a prompt, in bytes.
const MAX_NAMES_BYTES: usize = 8 * 1024;

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

/// Builds the section of the system prompt that lists deferred tools. MCP servers may define any number of tools, so the list is
/// truncated.
pub(crate) fn deferred_section(names: &[&str]) -> String {
    let mut bytes = 0;
    let fits = |name: &&&str| {
        bytes += name.len() + 1;
        bytes <= MAX_NAMES_BYTES
    };
    let listed: Vec<&str> = names.iter().take_while(fits).copied().collect();
    let more = match names.len() - listed.len() {
        0 => String::new(),
        more => format!("\n(and {more} more, which only a search finds)"),
    };
    format!(
        "<available-deferred-tools>\n\
         These tools are there as well, but you see only their names. Load what the work needs with `tool_search`, then call it:\n\
         {}{more}\n\
         </available-deferred-tools>",
        listed.join("\n")
    )
}

#[cfg(test)]
#[path = "dynamic_tools_tests.rs"]
mod tests;
