//! Selects the tools of a client's agents.

use std::sync::Arc;

use crate::agents::lead::{DEFAULT_FILE_TOOLS, bash_tool, file_tool, kind_of};
use crate::config::AppConfig;
use crate::sandbox::{CommandSandbox, FileHome};
use crate::tools::builtins::PresentFiles;
use crate::tools::{ToolRegistry, erase};

/// Kind of the shell command tool.
const BASH: &str = "bash";

/// Returns the tools of the embedding program, followed by the configured ones that need only files
/// and a command sandbox. Without files it returns only the former.
pub(super) fn agent_tools(
    own: ToolRegistry,
    commands: Option<Arc<dyn CommandSandbox>>,
    config: &AppConfig,
    files: Option<&FileHome>,
) -> ToolRegistry {
    let Some(files) = files else { return own };
    let mut tools = own;
    let mut configured: Vec<&str> = config.tools.iter().map(kind_of).collect();
    if configured.is_empty() {
        configured.extend(DEFAULT_FILE_TOOLS);
        configured.extend(commands.is_some().then_some(BASH));
    }
    configured.retain(|kind| tools.get(kind).is_none());
    for kind in configured {
        let bash = || {
            commands
                .clone()
                .filter(|_| kind == BASH)
                .map(|sandbox| bash_tool(sandbox, config, files))
        };
        match file_tool(kind, config, files).or_else(bash) {
            Some(tool) => tools.add(tool),
            None => tracing::info!(
                kind,
                "configured tool must be provided by the embedding program"
            ),
        }
    }
    tools.add(erase(PresentFiles {
        home: files.clone(),
    }));
    tools
}
