//! The MCP servers of an installation: where they are configured, and the tools that they give agents.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::settings::{McpChange, McpPort, McpPortError};
use super::toolbox::{McpConfig, McpSurroundings, McpToolbox, McpUnavailable};
use crate::config::{
    AppConfig, ConfigSource, Extensions, ExtensionsError, ExtensionsFile, MCP_SERVERS, Variables,
};
use crate::ids::ThreadId;
use crate::runtime::tasks::{TaskKind, Tasks};
use crate::tools::ToolSource;

/// Programs that clients may configure wherever servers are configured: launchers of published packages.
pub const LAUNCHERS: [&str; 2] = ["npx", "uvx"];

/// Where servers are configured, and by whom.
#[derive(Debug)]
pub struct McpPlace {
    /// The file that clients change.
    pub file: Arc<ExtensionsFile>,
    /// What stands above it.
    pub config: Arc<dyn ConfigSource>,
    /// What its `$NAME`s stand for.
    pub variables: Variables,
    /// The programs that clients may configure, besides [`LAUNCHERS`].
    pub launchers: Vec<String>,
}

/// The servers of a file and of the configuration above it, and their tools.
#[derive(Debug)]
pub struct ConfiguredMcp {
    settings: Arc<FileMcpConfig>,
    toolbox: McpToolbox,
    tasks: Tasks,
    launchers: Vec<String>,
}

impl ConfiguredMcp {
    /// Opens the toolbox and has it look at its servers, so that the first run need not wait for them.
    ///
    /// # Errors
    /// As [`McpToolbox::new`].
    pub fn open(place: McpPlace, surroundings: McpSurroundings) -> Result<Self, McpUnavailable> {
        let McpPlace {
            file,
            config,
            variables,
            launchers,
        } = place;
        let tasks = surroundings.tasks.clone();
        let settings = Arc::new(FileMcpConfig {
            file,
            config,
            variables,
            last: Mutex::default(),
            complaint: Mutex::default(),
        });
        let toolbox = McpToolbox::new(settings.clone(), surroundings)?;
        toolbox.keep_swept();
        let mcp = Self {
            settings,
            toolbox,
            tasks,
            launchers,
        };
        mcp.look();
        Ok(mcp)
    }

    /// Where the servers are configured.
    pub fn config(&self) -> Arc<dyn McpConfig> {
        self.settings.clone()
    }

    /// The tools, for agents.
    pub fn tools(&self) -> Arc<dyn ToolSource> {
        Arc::new(self.toolbox.clone())
    }

    /// Ends the conversations of a thread that is deleted.
    pub async fn end_thread(&self, user: &str, thread: &ThreadId) {
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
    config: Arc<dyn ConfigSource>,
    variables: Variables,
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
        let resolved = written
            .overlaid(&config.extensions)
            .resolved(|name| self.variables.get(name));
        let extensions = Arc::new(resolved);
        *last = Some(Resolved {
            written,
            config,
            extensions: extensions.clone(),
        });
        extensions
    }

    async fn load(&self) -> Result<Arc<Extensions>, ExtensionsError> {
        let file = self.file.clone();
        tokio::task::spawn_blocking(move || file.load())
            .await
            .unwrap_or_else(|_panic| self.file.load())
    }
}

#[async_trait]
impl McpConfig for FileMcpConfig {
    async fn extensions(&self) -> Option<Arc<Extensions>> {
        let loaded = self.load().await;
        let complaint = loaded
            .as_ref()
            .err()
            .map(ToString::to_string)
            .unwrap_or_default();
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
        let edit = move || {
            file.edit(|all| {
                all.change_section(MCP_SERVERS, |servers| {
                    change(servers).map(|()| servers.clone())
                })
            })
        };
        let changed = tokio::task::spawn_blocking(edit)
            .await
            .map_err(|panic| McpPortError::Failed(panic.to_string()))??;
        self.toolbox.refresh().await;
        self.look();
        Ok(changed)
    }

    async fn reset(&self) {
        self.toolbox.reset().await;
        self.look();
    }

    fn launchers(&self) -> Vec<String> {
        LAUNCHERS
            .iter()
            .map(|name| (*name).to_owned())
            .chain(self.launchers.iter().cloned())
            .collect()
    }
}
