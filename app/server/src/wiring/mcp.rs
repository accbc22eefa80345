//! The MCP servers of an installation: where they are configured, and the tools that they give agents.

use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use deerflow_gateway::ports::{McpChange, McpPort, McpPortError};
use harness::config::{AppConfig, Extensions, ExtensionsError, ExtensionsFile, MCP_SERVERS};
use harness::ids::ThreadId;
use harness::mcp::{McpConfig, McpSurroundings, McpToolbox};
use harness::runtime::tasks::{TaskKind, Tasks};
use harness::sandbox::FileHome;
use harness::tools::ToolSource;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::config::{ConfigHandle, Environment};

/// What servers and agents that are processes get of this process' environment: nothing that is a secret. The rest is for their own `env`.
const VARIABLES: [&str; 12] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"];
/// Programs that may be configured over HTTP, besides those that the environment names.
const LAUNCHERS: [&str; 2] = ["npx", "uvx"];
const MORE_LAUNCHERS: &str = "DEER_FLOW_MCP_STDIO_COMMAND_ALLOWLIST";

/// The servers of the file and of `config.yaml`, and their tools.
#[derive(Debug)]
pub(super) struct ConfiguredMcp {
    settings: Arc<FileMcpConfig>,
    toolbox: McpToolbox,
    tasks: Tasks,
}

/// Opens the toolbox and has it look at its servers, so that the first run need not wait for them.
pub(super) fn open(
    config: &ConfigHandle,
    file: Arc<ExtensionsFile>,
    files: &FileHome,
    tasks: &Tasks,
) -> anyhow::Result<Arc<ConfiguredMcp>> {
    let variables = program_variables(config.environment());
    let surroundings = McpSurroundings { files: Some(files.clone()), variables, tasks: tasks.clone() };
    let settings = Arc::new(FileMcpConfig { file, config: config.clone(), last: Mutex::default(), complaint: Mutex::default() });
    let toolbox = McpToolbox::new(settings.clone(), surroundings).context("MCP servers cannot be used")?;
    toolbox.keep_swept();
    let mcp = ConfiguredMcp { settings, toolbox, tasks: tasks.clone() };
    mcp.look();
    Ok(Arc::new(mcp))
}

/// The variables of every program that tools come from.
pub(super) fn program_variables(environment: &Environment) -> Vec<(String, String)> {
    VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), environment.get(name)?.to_owned()))).collect()
}

impl ConfiguredMcp {
    /// Where the servers are configured.
    pub(super) fn config(&self) -> Arc<dyn McpConfig> {
        self.settings.clone()
    }

    /// The tools, for agents.
    pub(super) fn tools(&self) -> Arc<dyn ToolSource> {
        Arc::new(self.toolbox.clone())
    }

    /// Ends the conversations of a thread that is deleted.
    pub(super) async fn end_thread(&self, user: &str, thread: &ThreadId) {
        self.toolbox.end_thread(user, thread).await;
    }

    /// Has servers looked at that are new, so that the next run need not wait for them.
    fn look(&self) {
        let toolbox = self.toolbox.clone();
        let token = self.tasks.token().clone();
        self.tasks.spawn(TaskKind::Service, "mcp look", async move {
            tokio::select! {
                _set = toolbox.tools() => {}
                () = token.cancelled() => {}
            }
        });
    }
}

/// `mcpServers` of the extensions file, below what `extensions` of `config.yaml` says.
#[derive(Debug)]
struct FileMcpConfig {
    file: Arc<ExtensionsFile>,
    config: ConfigHandle,
    last: Mutex<Option<Resolved>>,
    /// What the log was told last, so that it is told once.
    complaint: Mutex<String>,
}

#[derive(Debug, Clone)]
struct Resolved {
    written: Arc<Extensions>,
    config: Arc<AppConfig>,
    extensions: Arc<Extensions>,
}

impl FileMcpConfig {
    fn resolve(&self, written: Arc<Extensions>) -> Arc<Extensions> {
        let config = self.config.current();
        let mut last = self.last.lock();
        if let Some(last) = &*last
            && Arc::ptr_eq(&last.written, &written)
            && Arc::ptr_eq(&last.config, &config)
        {
            return last.extensions.clone();
        }
        let environment = self.config.environment();
        let resolved = written.overlaid(&config.extensions).resolved(|name| environment.get(name).map(str::to_owned));
        let extensions = Arc::new(resolved);
        *last = Some(Resolved { written, config, extensions: extensions.clone() });
        extensions
    }

    async fn load(&self) -> Result<Arc<Extensions>, ExtensionsError> {
        let file = self.file.clone();
        tokio::task::spawn_blocking(move || file.load()).await.unwrap_or_else(|_panic| self.file.load())
    }
}

#[async_trait]
impl McpConfig for FileMcpConfig {
    async fn extensions(&self) -> Option<Arc<Extensions>> {
        let loaded = self.load().await;
        let complaint = loaded.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let mut told = self.complaint.lock();
        if *told != complaint {
            if !complaint.is_empty() {
                tracing::error!(error = %complaint, "the extensions cannot be read, the last good ones stay in force");
            }
            *told = complaint;
        }
        drop(told);
        loaded.ok().map(|written| self.resolve(written))
    }
}

#[async_trait]
impl McpPort for ConfiguredMcp {
    async fn servers(&self) -> Result<Map<String, Value>, McpPortError> {
        let written = self.settings.load().await?;
        Ok(written.section(MCP_SERVERS).cloned().unwrap_or_default())
    }

    async fn change(&self, change: McpChange) -> Result<Map<String, Value>, McpPortError> {
        let file = self.settings.file.clone();
        let edit = move || file.edit(|all| all.change_section(MCP_SERVERS, |servers| change(servers).map(|()| servers.clone())));
        let changed = tokio::task::spawn_blocking(edit).await.map_err(|panic| McpPortError::Failed(panic.to_string()))??;
        self.toolbox.refresh().await;
        self.look();
        Ok(changed)
    }

    async fn reset(&self) {
        self.toolbox.reset().await;
        self.look();
    }

    fn launchers(&self) -> Vec<String> {
        let more = self.settings.config.environment().filled(MORE_LAUNCHERS).unwrap_or_default();
        let more = more.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        LAUNCHERS.iter().map(|name| (*name).to_owned()).chain(more).collect()
    }
}
