//! The tools of all configured servers, as the configuration stands and as the servers answer.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::http;
use super::names::Taken;
use super::pool::{LONGEST_IDLE, Pool};
use super::server::{Server, Shared};
use super::spec::ServerSpec;
use super::tool::McpTool;
use crate::config::Extensions;
use crate::ids::ThreadId;
use crate::runtime::tasks::{TaskKind, Tasks};
use crate::sandbox::FileHome;
use crate::tools::{ToolSet, ToolSource};

/// How often conversations are looked through for those that nobody uses.
const SWEEP: Duration = Duration::from_secs(60);
/// Tools of all servers together.
const MOST_TOOLS: usize = 5_000;

/// Where servers are configured. `$VARIABLE`s are resolved. Equal answers may be the same `Arc`, which saves reading them again.
#[async_trait]
pub trait McpConfig: fmt::Debug + Send + Sync + 'static {
    /// The configuration as it is now; `None` when it cannot be read, and the one before stays in force.
    async fn extensions(&self) -> Option<Arc<Extensions>>;
}

/// What servers need of their surroundings.
#[derive(Debug)]
pub struct McpSurroundings {
    /// The threads' files, beside which programs have folders of their own.
    pub files: Option<FileHome>,
    /// The variables that every process gets, besides its own.
    pub variables: Vec<(String, String)>,
    /// Where work goes on beside the runs.
    pub tasks: Tasks,
}

/// The HTTP client could not be made, for instance because the system's certificates cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the HTTP client for MCP servers cannot be made: {0}")]
pub struct McpUnavailable(String);

/// The servers and their tools. Clones share them.
#[derive(Debug, Clone)]
pub struct McpToolbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Arc<dyn McpConfig>,
    shared: Arc<Shared>,
    last_id: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The configuration that the servers are of.
    seen: Option<Arc<Extensions>>,
    servers: Vec<Arc<Server>>,
    /// The servers and the versions of their lists that the set was made of.
    made_of: Vec<(u64, u64)>,
    set: Arc<ToolSet>,
}

impl McpToolbox {
    /// The tools of the servers in this configuration. No server is talked to before somebody asks for tools.
    ///
    /// # Errors
    /// When HTTP cannot be spoken here.
    pub fn new(
        config: Arc<dyn McpConfig>,
        surroundings: McpSurroundings,
    ) -> Result<Self, McpUnavailable> {
        let client = http::client().map_err(|error| McpUnavailable(error.to_string()))?;
        let McpSurroundings {
            files,
            variables,
            tasks,
        } = surroundings;
        let shared = Arc::new(Shared {
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

    /// Ends conversations that nobody uses any more, for as long as the process lives.
    pub fn keep_swept(&self) {
        let (shared, token) = (self.0.shared.clone(), self.0.shared.tasks.token().clone());
        self.0
            .shared
            .tasks
            .spawn(TaskKind::Service, "mcp sweeper", async move {
                loop {
                    tokio::select! {
                        () = tokio::time::sleep(SWEEP) => {}
                        () = token.cancelled() => return,
                    }
                    if let Some(then) = Instant::now().checked_sub(LONGEST_IDLE) {
                        shared.pool.end_idle(then).await;
                    }
                }
            });
    }

    /// Takes over the configuration as it is now, and has all servers looked at again. Conversations with those that did not change
    /// go on.
    pub async fn refresh(&self) {
        self.0
            .servers()
            .await
            .iter()
            .for_each(|server| server.look_again());
    }

    /// Forgets what is known of the servers and ends all conversations: the next who asks finds everything anew.
    pub async fn reset(&self) {
        let servers = self.0.servers().await;
        servers.iter().for_each(|server| server.forget());
        self.0.end(&servers).await;
    }

    /// Ends the conversations of a thread that is deleted.
    pub async fn end_thread(&self, user: &str, thread: &ThreadId) {
        self.0.shared.pool.end_thread(user, thread.as_str()).await;
    }
}

#[async_trait]
impl ToolSource for McpToolbox {
    async fn tools(&self) -> Arc<ToolSet> {
        let servers = self.0.servers().await;
        servers.iter().for_each(Server::look);
        join_all(servers.iter().map(|server| server.settled())).await;
        self.0.set_of(&servers)
    }
}

impl Inner {
    /// The servers of the configuration in force. Those whose description did not change stay what they are.
    async fn servers(&self) -> Vec<Arc<Server>> {
        let extensions = self.config.extensions().await;
        let (servers, gone) = {
            let mut state = self.state.lock();
            let Some(extensions) = extensions else {
                return state.servers.clone();
            };
            if state
                .seen
                .as_ref()
                .is_some_and(|seen| Arc::ptr_eq(seen, &extensions))
            {
                return state.servers.clone();
            }
            let before = std::mem::take(&mut state.servers);
            state.servers = self.configured(&extensions, &before);
            state.seen = Some(extensions);
            let is_gone =
                |server: &&Arc<Server>| !state.servers.iter().any(|kept| kept.id == server.id);
            let gone: Vec<Arc<Server>> = before.iter().filter(is_gone).cloned().collect();
            (state.servers.clone(), gone)
        };
        if !gone.is_empty() {
            gone.iter().for_each(|server| server.retire());
            let shared = self.shared.clone();
            let ids: Vec<u64> = gone.iter().map(|server| server.id).collect();
            self.shared
                .say_goodbye(async move { shared.pool.end_servers(&ids).await });
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
                Err(error) => tracing::error!(server = %name, %error, "an mcp server is left out"),
            }
        }
        servers
    }

    /// The tools that are known of these servers; the same set as before when nothing has changed.
    fn set_of(&self, servers: &[Arc<Server>]) -> Arc<ToolSet> {
        let lists: Vec<_> = servers
            .iter()
            .map(|server| (server, server.list()))
            .collect();
        let made_of: Vec<(u64, u64)> = lists
            .iter()
            .map(|(server, list)| (server.id, list.version))
            .filter(|(_, version)| *version > 0)
            .collect();
        let mut state = self.state.lock();
        if state.made_of == made_of {
            return state.set.clone();
        }
        let mut taken = Taken::default();
        let mut tools = Vec::new();
        for (server, list) in &lists {
            for tool in list.tools.iter() {
                if !taken.is_new(&tool.schema.name) {
                    tracing::warn!(server = %server.spec.name, tool = %tool.schema.name, "a second tool of this name is left out");
                } else if tools.len() < MOST_TOOLS {
                    tools.push(McpTool::erased((*server).clone(), tool.clone()));
                }
            }
        }
        let version = state.set.version() + 1;
        state.made_of = made_of;
        state.set = Arc::new(ToolSet::new(version, tools));
        state.set.clone()
    }

    async fn end(&self, servers: &[Arc<Server>]) {
        let ids: Vec<u64> = servers.iter().map(|server| server.id).collect();
        self.shared.pool.end_servers(&ids).await;
    }
}
