//! Connects the MCP toolbox to the extensions file and the configuration of an installation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::settings::{McpChange, McpPort, McpPortError};
use super::toolbox::{McpConfig, McpContext, McpToolbox, McpUnavailable};
use crate::config::{
    AppConfig, ConfigSource, Extensions, ExtensionsError, ExtensionsFile, MCP_SERVERS, Variables,
};
use crate::ids::ThreadId;
use crate::rechecked::{Reading, Rechecked};
use crate::runtime::tasks::{TaskKind, Tasks};
use crate::tools::ToolSource;

/// Programs that clients may always configure: launchers of published packages.
pub const LAUNCHERS: [&str; 2] = ["npx", "uvx"];

/// Sources of the MCP server configuration.
#[derive(Debug)]
pub struct McpConfigSource {
    /// Extensions file, which clients may change.
    pub file: Arc<ExtensionsFile>,
    /// Configuration whose `extensions` section overrides the file.
    pub config: Arc<dyn ConfigSource>,
    /// Values of `$NAME` references.
    pub variables: Variables,
    /// Programs that clients may configure, in addition to [`LAUNCHERS`].
    pub launchers: Vec<String>,
}

/// MCP servers of the extensions file and the configuration, and their tools.
#[derive(Debug)]
pub struct ConfiguredMcp {
    settings: Arc<FileMcpConfig>,
    toolbox: McpToolbox,
    tasks: Tasks,
    launchers: Vec<String>,
}

impl ConfiguredMcp {
    /// Creates the toolbox and starts tool discovery in the background, so that the first run need
    /// not wait for it.
    ///
    /// # Errors
    /// The errors of [`McpToolbox::new`].
    pub fn open(source: McpConfigSource, context: McpContext) -> Result<Self, McpUnavailable> {
        let McpConfigSource {
            file,
            config,
            variables,
            launchers,
        } = source;
        let tasks = context.tasks.clone();
        let settings = Arc::new(FileMcpConfig {
            file,
            config,
            variables,
            tasks: tasks.clone(),
            written: Arc::default(),
            changes: Arc::default(),
            last: Mutex::default(),
            last_error: Mutex::default(),
        });
        let toolbox = McpToolbox::new(settings.clone(), context)?;
        toolbox.keep_swept();
        let mcp = Self {
            settings,
            toolbox,
            tasks,
            launchers,
        };
        mcp.start_discovery();
        Ok(mcp)
    }

    /// Returns the source of the server configuration.
    pub fn config(&self) -> Arc<dyn McpConfig> {
        self.settings.clone()
    }

    /// Returns the tools as a source for agents.
    pub fn tools(&self) -> Arc<dyn ToolSource> {
        Arc::new(self.toolbox.clone())
    }

    /// Closes the sessions of a deleted thread.
    pub async fn end_thread(&self, user: &str, thread: &ThreadId) {
        self.toolbox.end_thread(user, thread).await;
    }

    /// Starts tool discovery of new servers in the background, so that the next run need not wait
    /// for it.
    fn start_discovery(&self) {
        let toolbox = self.toolbox.clone();
        let token = self.tasks.token().clone();
        self.tasks
            .spawn(TaskKind::Service, "mcp warm-up", async move {
                tokio::select! {
                    _set = toolbox.tools() => {}
                    () = token.cancelled() => {}
                }
            });
    }
}

/// `mcpServers` of the extensions file, overridden by `extensions` of `config.yaml`. Runs check
/// the metadata of the file at most once per second.
#[derive(Debug)]
struct FileMcpConfig {
    file: Arc<ExtensionsFile>,
    config: Arc<dyn ConfigSource>,
    variables: Variables,
    tasks: Tasks,
    /// Content of the file, with the number of changes as its stamp.
    written: Arc<Rechecked<Arc<Extensions>, u64>>,
    /// Number of changes of the file by this process.
    changes: Arc<AtomicU64>,
    last: Mutex<Option<Resolved>>,
    /// Last logged error, so that each error is logged once.
    last_error: Mutex<String>,
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

    /// Returns the content of the file as it was within the last second, or after the last change
    /// by this process.
    async fn recent(&self) -> Result<Arc<Extensions>, ExtensionsError> {
        let stamp = || self.changes.load(Ordering::Acquire);
        let read = |_previous| {
            let file = self.file.clone();
            async move { load(file).await.map(Reading::Complete) }
        };
        self.written.get(stamp, Some(&self.tasks), read).await
    }

    /// Executes a change of the file and counts it, also if it fails. The worker counts, since the
    /// change completes even if the caller goes away.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&ExtensionsFile) -> Result<T, McpPortError> + Send + 'static,
    ) -> Result<T, McpPortError> {
        let (file, changes) = (self.file.clone(), self.changes.clone());
        let work = move || {
            let outcome = change(&file);
            changes.fetch_add(1, Ordering::Release);
            outcome
        };
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|panic| McpPortError::Failed(panic.to_string()))?
    }
}

async fn load(file: Arc<ExtensionsFile>) -> Result<Arc<Extensions>, ExtensionsError> {
    let reader = file.clone();
    tokio::task::spawn_blocking(move || reader.load())
        .await
        .unwrap_or_else(|_panic| file.load())
}

#[async_trait]
impl McpConfig for FileMcpConfig {
    async fn extensions(&self) -> Option<Arc<Extensions>> {
        let loaded = self.recent().await;
        let last_error = loaded
            .as_ref()
            .err()
            .map(ToString::to_string)
            .unwrap_or_default();
        let mut logged = self.last_error.lock();
        if *logged != last_error {
            if !last_error.is_empty() {
                tracing::error!(error = %last_error, "cannot read the extensions file, keeping the last valid version");
            }
            *logged = last_error;
        }
        drop(logged);
        loaded.ok().map(|written| self.resolve(written))
    }
}

#[async_trait]
impl McpPort for ConfiguredMcp {
    async fn servers(&self) -> Result<Map<String, Value>, McpPortError> {
        let written = load(self.settings.file.clone()).await?;
        Ok(written.section(MCP_SERVERS).cloned().unwrap_or_default())
    }

    async fn change(&self, change: McpChange) -> Result<Map<String, Value>, McpPortError> {
        let edit = |file: &ExtensionsFile| {
            file.edit(|all| {
                all.change_section(MCP_SERVERS, |servers| {
                    change(servers).map(|()| servers.clone())
                })
            })
        };
        let changed = self.settings.change(edit).await?;
        self.toolbox.refresh().await;
        self.start_discovery();
        Ok(changed)
    }

    async fn reset(&self) {
        self.settings.changes.fetch_add(1, Ordering::Release);
        self.toolbox.reset().await;
        self.start_discovery();
    }

    fn launchers(&self) -> Vec<String> {
        LAUNCHERS
            .iter()
            .map(|name| (*name).to_owned())
            .chain(self.launchers.iter().cloned())
            .collect()
    }
}

#[cfg(test)]
#[path = "configured_tests.rs"]
mod tests;
