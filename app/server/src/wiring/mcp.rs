//! Opens the MCP servers of an installation.

use std::sync::Arc;

use anyhow::Context;
use harness::config::{ExtensionsFile, Variables};
use harness::config_file::Environment;
use harness::mcp::{ConfiguredMcp, McpConfigSource, McpContext};
use harness::runtime::tasks::Tasks;
use harness::sandbox::FileHome;

use crate::config::ConfigHandle;

/// Environment variables that child processes inherit. None contains a secret; others must be set
/// in the entry's `env`.
const VARIABLES: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// Variable with further programs that may be configured over HTTP.
const MORE_LAUNCHERS: &str = "DEER_FLOW_MCP_STDIO_COMMAND_ALLOWLIST";

/// Opens the MCP servers.
pub(super) fn open(
    config: &ConfigHandle,
    file: Arc<ExtensionsFile>,
    files: &FileHome,
    tasks: &Tasks,
) -> anyhow::Result<Arc<ConfiguredMcp>> {
    let environment = config.environment().clone();
    let more = environment.filled(MORE_LAUNCHERS).unwrap_or_default();
    let launchers = more
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    let context = McpContext {
        files: Some(files.clone()),
        variables: program_variables(&environment),
        tasks: tasks.clone(),
    };
    let variables = Variables::new(move |name| environment.get(name).map(str::to_owned));
    let source = McpConfigSource {
        file,
        config: Arc::new(config.clone()),
        variables,
        launchers,
    };
    Ok(Arc::new(
        ConfiguredMcp::open(source, context).context("cannot open the MCP servers")?,
    ))
}

/// Returns the inherited variables of tool processes.
pub(super) fn program_variables(environment: &Environment) -> Vec<(String, String)> {
    VARIABLES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), environment.get(name)?.to_owned())))
        .collect()
}
