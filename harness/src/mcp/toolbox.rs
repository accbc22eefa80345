//! Tools of all configured servers. Follows changes of the configuration and of the servers' tool
//! lists.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::http;
use super::names::UsedNames;
use super::pool::{MAX_IDLE, Pool};
use super::server::{Server, SharedResources};
use super::spec::ServerSpec;
use super::tool::McpTool;
use crate::config::Extensions;
use crate::ids::ThreadId;
use crate::runtime::tasks::{TaskKind, Tasks};
use crate::sandbox::FileHome;
use crate::tools::{ToolSet, ToolSource};

/// Interval between sweeps for idle sessions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of tools of all servers together.
const MAX_TOOLS: usize = 5_000;

/// Source of the server configuration. `$VARIABLE` references are resolved. An implementation may
/// return the same `Arc` for an unchanged configuration, which saves parsing it again.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use deerflow_harness::config::Extensions;
/// use deerflow_harness::mcp::McpConfig;
///
/// /// Servers that do not change while the process runs.
/// #[derive(Debug)]
/// struct Fixed(Arc<Extensions>);
///
/// #[async_trait]
/// impl McpConfig for Fixed {
///     async fn extensions(&self) -> Option<Arc<Extensions>> {
///         Some(self.0.clone())
///     }
/// }
/// ```
#[async_trait]
pub trait McpConfig: fmt::Debug + Send + Sync + 'static {
    /// Returns the current configuration, or `None` if it cannot be read; the previous one then
    /// stays in force.
    async fn extensions(&self) -> Option<Arc<Extensions>>;
}

/// Dependencies of the servers.
#[derive(Debug)]
pub struct McpContext {
    /// Files of threads. Server processes get private folders in the same home.
    pub files: Option<FileHome>,
    /// Environment variables of every process, in addition to those of its entry.
    pub variables: Vec<(String, String)>,
    /// Task set for background work.
    pub tasks: Tasks,
}

/// Failure to create the HTTP client, for example because the system's certificates cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot create the HTTP client for MCP servers: {0}")]
pub struct McpUnavailable(String);

/// Configured servers and their tools. Clones share the state.
#[derive(Debug, Clone)]
pub struct McpToolbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Arc<dyn McpConfig>,
    shared: Arc<SharedResources>,
    last_id: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Configuration from which `servers` was built.
    applied: Option<Arc<Extensions>>,
    servers: Vec<Arc<Server>>,
    /// Server ids and list versions from which `set` was built.
    built_from: Vec<(u64, u64)>,
    set: Arc<ToolSet>,
}

impl McpToolbox {
    /// Creates a toolbox for the servers in this configuration. It connects to no server before the
    /// tools are requested.
    ///
    /// # Errors
    /// An error if the HTTP client cannot be created.
    pub fn new(config: Arc<dyn McpConfig>, context: McpContext) -> Result<Self, McpUnavailable> {
        let client = http::client().map_err(|error| McpUnavailable(error.to_string()))?;
        let McpContext {
            files,
            variables,
            tasks,
        } = context;
        let shared = Arc::new(SharedResources {
            files,
            variables,
            client,
            pool: Pool::default(),
            tasks,
        });
        Ok(Self(Arc::new(Inner {
            config,
            shared,
            last_id: AtomicU64::new(0),
            state: Mutex::default(),
        })))
    }

    /// Starts a background task that closes idle sessions until shutdown.
    pub fn keep_swept(&self) {
        let (shared, token) = (self.0.shared.clone(), self.0.shared.tasks.token().clone());
        self.0
            .shared
            .tasks
            .spawn(TaskKind::Service, "mcp sweeper", async move {
                loop {
                    tokio::select! {
                        () = tokio::time::sleep(SWEEP_INTERVAL) => {}
                        () = token.cancelled() => return,
                    }
                    if let Some(cutoff) = Instant::now().checked_sub(MAX_IDLE) {
                        shared.pool.end_idle(cutoff).await;
                    }
                }
            });
    }

    /// Applies the current configuration and makes the next request for tools discover the tools of
    /// all servers again. Sessions with unchanged servers stay open.
    pub async fn refresh(&self) {
        self.0
            .servers()
            .await
            .iter()
            .for_each(|server| server.request_discovery());
    }

    /// Discards the discovered tools and closes all sessions. The next request for tools starts a
    /// new discovery.
    pub async fn reset(&self) {
        let servers = self.0.servers().await;
        servers.iter().for_each(|server| server.forget());
        self.0.end(&servers).await;
    }

    /// Closes the sessions of a deleted thread.
    pub async fn end_thread(&self, user: &str, thread: &ThreadId) {
        self.0.shared.pool.end_thread(user, thread.as_str()).await;
    }
}

#[async_trait]
impl ToolSource for McpToolbox {
    async fn tools(&self) -> Arc<ToolSet> {
        let servers = self.0.servers().await;
        servers.iter().for_each(Server::discover);
        join_all(servers.iter().map(|server| server.wait_for_discovery())).await;
        self.0.tool_set(&servers)
    }
}

impl Inner {
    /// Returns the servers of the configuration in force. Unchanged servers keep their state.
    async fn servers(&self) -> Vec<Arc<Server>> {
        let extensions = self.config.extensions().await;
        let (servers, removed) = {
            let mut state = self.state.lock();
            let Some(extensions) = extensions else {
                return state.servers.clone();
            };
            if state
                .applied
                .as_ref()
                .is_some_and(|applied| Arc::ptr_eq(applied, &extensions))
            {
                return state.servers.clone();
            }
            let before = std::mem::take(&mut state.servers);
            state.servers = self.configured(&extensions, &before);
            state.applied = Some(extensions);
            let is_removed = |server: &&Arc<Server>| {
                !state.servers.iter().any(|current| current.id == server.id)
            };
            let removed: Vec<Arc<Server>> = before.iter().filter(is_removed).cloned().collect();
            (state.servers.clone(), removed)
        };
        if !removed.is_empty() {
            removed.iter().for_each(|server| server.retire());
            let shared = self.shared.clone();
            let ids: Vec<u64> = removed.iter().map(|server| server.id).collect();
            self.shared
                .close_in_background(async move { shared.pool.end_servers(&ids).await });
        }
        servers
    }

    fn configured(&self, extensions: &Extensions, before: &[Arc<Server>]) -> Vec<Arc<Server>> {
        let mut servers = Vec::new();
        for (name, spec) in ServerSpec::all(extensions) {
            match spec {
                Ok(spec) => servers.push(
                    before
                        .iter()
                        .find(|server| server.spec.is_same(&spec))
                        .cloned()
                        .unwrap_or_else(|| {
                            let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
                            Arc::new(Server::new(id, spec, self.shared.clone()))
                        }),
                ),
                Err(error) => {
                    tracing::error!(server = %name, %error, "skipping invalid mcp server")
                }
            }
        }
        servers
    }

    /// Returns the discovered tools of these servers; the previous set if no list has changed.
    fn tool_set(&self, servers: &[Arc<Server>]) -> Arc<ToolSet> {
        let lists: Vec<_> = servers
            .iter()
            .map(|server| (server, server.list()))
            .collect();
        let built_from: Vec<(u64, u64)> = lists
            .iter()
            .map(|(server, list)| (server.id, list.version))
            .filter(|(_, version)| *version > 0)
            .collect();
        let mut state = self.state.lock();
        if state.built_from == built_from {
            return state.set.clone();
        }
        let mut used = UsedNames::default();
        let mut tools = Vec::new();
        for (server, list) in &lists {
            for tool in list.tools.iter() {
                if !used.insert(&tool.schema.name) {
                    tracing::warn!(server = %server.spec.name, tool = %tool.schema.name, "skipping mcp tool with a duplicate name");
                } else if tools.len() < MAX_TOOLS {
                    tools.push(McpTool::erased((*server).clone(), tool.clone()));
                }
            }
        }
        let version = state.set.version() + 1;
        state.built_from = built_from;
        state.set = Arc::new(ToolSet::new(version, tools));
        state.set.clone()
    }

    async fn end(&self, servers: &[Arc<Server>]) {
        let ids: Vec<u64> = servers.iter().map(|server| server.id).collect();
        self.shared.pool.end_servers(&ids).await;
    }
}
