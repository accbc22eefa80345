//! Shared helpers of these tests: scripted agents, and a tool that calls them.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use harness::acp::{AcpContext, InvokeAcpAgent};
use harness::config::{AcpAgentConfig, Extensions, MCP_SERVERS};
use harness::mcp::McpConfig;
use harness::runtime::actor_context::ActorContext;
use harness::sandbox::{FileHome, FileLimits};
use harness::testkit::tool_context;
use harness::tools::{DynTool, erase};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Path of the agent's program.
pub(crate) const AGENT: &str = env!("CARGO_BIN_EXE_scripted-acp");

/// Home folder with agents that work in it.
pub(super) struct Bench {
    pub(super) home: TempDir,
    around: Arc<AcpContext>,
}

/// MCP servers that do not change.
#[derive(Debug)]
struct Fixed(Arc<Extensions>);

#[async_trait]
impl McpConfig for Fixed {
    async fn extensions(&self) -> Option<Arc<Extensions>> {
        Some(self.0.clone())
    }
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with_servers(&json!({}))
    }

    pub(super) fn with_servers(servers: &Value) -> Self {
        let home = tempfile::tempdir().expect("a home");
        let files = FileHome::new(home.path(), FileLimits::default());
        let variables = vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
        let mut extensions = Extensions::default();
        extensions.change_section(MCP_SERVERS, |section| {
            section.clone_from(servers.as_object().expect("servers"))
        });
        let around = AcpContext::new(
            files,
            variables,
            Some(Arc::new(Fixed(Arc::new(extensions)))),
        );
        Self {
            home,
            around: Arc::new(around),
        }
    }

    /// Builds the tool over one agent, `bob`.
    pub(super) fn tool(&self, entry: Value) -> Arc<dyn DynTool> {
        let entry: AcpAgentConfig = serde_json::from_value(entry).expect("an entry");
        let agents = [("bob".to_owned(), entry)].into_iter().collect();
        InvokeAcpAgent::new(agents, self.around.clone())
            .map(erase)
            .expect("a tool")
    }

    pub(super) async fn ask(&self, entry: Value, prompt: &str) -> Result<String, String> {
        self.ask_as("ann", entry, prompt).await
    }

    pub(super) async fn ask_as(
        &self,
        user: &str,
        entry: Value,
        prompt: &str,
    ) -> Result<String, String> {
        let mut context = tool_context();
        context.run.actor = ActorContext::user(user);
        let args = json!({"agent": "bob", "prompt": prompt})
            .as_object()
            .cloned()
            .expect("arguments");
        let result = self.tool(entry).call(args, &context).await;
        result
            .map(|output| output.content.text())
            .map_err(|error| error.to_string())
    }

    /// Returns the folder in which a user's agents work.
    pub(super) fn workspace(&self, user: &str) -> PathBuf {
        self.home
            .path()
            .join(format!("users/{user}/threads/t/acp-workspace"))
    }
}

/// Returns an agent that performs `actions` in place of its normal behaviour.
pub(super) fn agent(actions: &[&str]) -> Value {
    json!({"command": AGENT, "args": actions, "description": "Does as it is told.", "timeout_seconds": 60})
}

/// Returns such an agent with added or replaced keys.
pub(super) fn agent_with(more: Value) -> Value {
    let mut entry = agent(&[]);
    for (key, value) in more.as_object().expect("an object") {
        entry[key] = value.clone();
    }
    entry
}

/// Reports whether a process is running. A dead process that was not reaped yet is not.
pub(super) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
