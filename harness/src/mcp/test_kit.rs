//! Shared test helpers: scripted server processes, and a toolbox over them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::{McpConfig, McpContext, McpToolbox};
use crate::config::{Extensions, MCP_SERVERS};
use crate::ids::ThreadId;
use crate::runtime::tasks::Tasks;
use crate::sandbox::{FileHome, FileLimits};
use crate::tools::{ToolContext, ToolOutput, ToolSet, ToolSource};

/// Configuration that tests change.
#[derive(Debug, Default)]
pub(super) struct FixedConfig(Mutex<Arc<Extensions>>);

#[async_trait]
impl McpConfig for FixedConfig {
    async fn extensions(&self) -> Option<Arc<Extensions>> {
        Some(self.0.lock().clone())
    }
}

/// Toolbox with its own home folder.
pub(super) struct TestToolbox {
    pub(super) home: tempfile::TempDir,
    pub(super) toolbox: McpToolbox,
    pub(super) tasks: Tasks,
    config: Arc<FixedConfig>,
}

impl TestToolbox {
    pub(super) fn with(servers: Value) -> Self {
        let home = tempfile::tempdir().unwrap();
        let tasks = Tasks::new();
        let config = Arc::new(FixedConfig::default());
        let files = FileHome::new(home.path(), FileLimits::default());
        let variables = vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
        let context = McpContext {
            files: Some(files),
            variables,
            tasks: tasks.clone(),
        };
        let toolbox = McpToolbox::new(config.clone(), context).unwrap();
        let fixture = Self {
            home,
            toolbox,
            tasks,
            config,
        };
        fixture.configure(servers);
        fixture
    }

    pub(super) fn configure(&self, servers: Value) {
        let mut extensions = Extensions::default();
        extensions.change_section(MCP_SERVERS, |section| {
            section.clone_from(servers.as_object().unwrap())
        });
        *self.config.0.lock() = Arc::new(extensions);
    }

    pub(super) async fn names(&self) -> Vec<String> {
        let set = self.toolbox.tools().await;
        names(&set)
    }

    pub(super) async fn call(&self, tool: &str, args: Value) -> Result<ToolOutput, String> {
        self.call_in("thread", tool, args).await
    }

    pub(super) async fn call_in(
        &self,
        thread: &str,
        tool: &str,
        args: Value,
    ) -> Result<ToolOutput, String> {
        let set = self.toolbox.tools().await;
        let tool = set
            .tools()
            .iter()
            .find(|known| known.schema().name == tool)
            .unwrap_or_else(|| panic!("no tool {tool}"));
        let args: Map<String, Value> = args.as_object().cloned().unwrap();
        tool.call(args, &tool_context(thread))
            .await
            .map_err(|error| error.to_string())
    }

    pub(super) async fn text(&self, tool: &str) -> String {
        self.call(tool, json!({})).await.unwrap().content.text()
    }
}

pub(super) fn names(set: &ToolSet) -> Vec<String> {
    set.tools()
        .iter()
        .map(|tool| tool.schema().name.clone())
        .collect()
}

pub(super) fn tool_context(thread: &str) -> ToolContext {
    let mut context = crate::testkit::tool_context();
    context.run.thread_id = ThreadId::parse(thread).unwrap();
    context
}

/// Server process that runs shell lines at each step. `$id` is the request id, `$line` the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptedServer {
    pub(super) first: &'static str,
    pub(super) greet: &'static str,
    pub(super) list: &'static str,
    pub(super) call: &'static str,
}

/// Valid handshake reply.
pub(super) const GREET: &str = r#"answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}'"#;
/// Tool list with one tool, `pid`.
pub(super) const LIST: &str =
    r#"answer '{"tools":[{"name":"pid","inputSchema":{"type":"object"}}]}'"#;
/// Call result with the id of the answering process.
pub(super) const CALL: &str = r#"answer "{\"content\":[{\"type\":\"text\",\"text\":\"$$\"}]}""#;

impl Default for ScriptedServer {
    fn default() -> Self {
        Self {
            first: ":",
            greet: GREET,
            list: LIST,
            call: CALL,
        }
    }
}

impl ScriptedServer {
    /// Returns the configuration entry of the server, with timeouts that a correct server never
    /// reaches.
    pub(super) fn entry(self) -> Value {
        let Self {
            first,
            greet,
            list,
            call,
        } = self;
        let script = format!(
            r#"answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
{first}
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) {greet} ;;
    *'"method":"tools/list"'*) {list} ;;
    *'"method":"tools/call"'*) {call} ;;
  esac
done"#
        );
        json!({"command": "/bin/sh", "args": ["-c", script], "session_init_timeout": 60, "tool_call_timeout": 60})
    }

    /// Returns the entry with another timeout for one step.
    pub(super) fn within(self, limit: &str, seconds: f64) -> Value {
        let mut entry = self.entry();
        entry[limit] = seconds.into();
        entry
    }
}

/// Waits until a condition holds; panics after a minute.
pub(super) async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waited)
        .await
        .unwrap_or_else(|_| panic!("{what}"));
}

/// `true` if the process runs; a zombie does not.
pub(super) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
