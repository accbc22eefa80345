//! Discovers the tools of a server, concurrently with the runs.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use rmcp::model::Tool;
use tokio::time::{Instant, timeout_at};

use super::catalog::{ListedTool, usable_tools};
use super::discovery_state::ToolList;
use super::error::McpError;
use super::server::Server;
use crate::runtime::tasks::TaskKind;

/// Maximum time that runs wait for the first discovery of a server.
const FIRST_DISCOVERY_TIMEOUT: Duration = Duration::from_secs(10);

impl Server {
    /// Returns the discovered tools.
    pub(super) fn list(&self) -> ToolList {
        self.list.borrow().clone()
    }

    /// Starts a discovery in the background if the state requires one and none is running.
    pub(super) fn discover(self: &Arc<Self>) {
        let mut state = self.discovery.lock();
        if state.started_at.is_some() || !state.is_due(self.tool_list_change.is_set()) {
            return;
        }
        state.started_at = Some(Instant::now());
        drop(state);
        let (server, token) = (self.clone(), self.shared.tasks.token().clone());
        self.shared
            .tasks
            .spawn(TaskKind::Service, "mcp discovery", async move {
                let attempt = DiscoveryAttempt(&server);
                let outcome = tokio::select! {
                    outcome = server.discover_tools() => outcome,
                    () = token.cancelled() => Err(McpError::Ended),
                };
                attempt.end(outcome);
            });
    }

    /// Makes the next [`discover`](Self::discover) start a discovery, whatever the result of the
    /// last one was. The known tools stay in use until it finishes.
    pub(super) fn request_discovery(&self) {
        let mut state = self.discovery.lock();
        (state.finished_at, state.failures) = (None, 0);
    }

    /// Discards the known tools and requests a discovery.
    pub(super) fn forget(&self) {
        self.request_discovery();
        self.discovery.lock().is_known = false;
        self.list.send_if_modified(|list| {
            let is_known = list.version > 0;
            if is_known {
                (list.version, list.tools) = (list.version + 1, Arc::default());
            }
            is_known
        });
    }

    /// Waits for the running discovery, at most [`FIRST_DISCOVERY_TIMEOUT`] after its start.
    /// Returns at once if the last discovery failed or the tools are known.
    pub(super) async fn wait_for_discovery(&self) {
        let mut list = self.list.subscribe();
        let until = {
            let state = self.discovery.lock();
            state
                .started_at
                .filter(|_| state.failures == 0 && !state.is_known)
                .map(|started_at| started_at + FIRST_DISCOVERY_TIMEOUT)
        };
        let Some(until) = until else { return };
        let attempts = list.borrow_and_update().attempts;
        let finished = async {
            while self.discovery.lock().started_at.is_some()
                && list.borrow_and_update().attempts == attempts
            {
                if list.changed().await.is_err() {
                    return;
                }
            }
        };
        if timeout_at(until, finished).await.is_err() {
            tracing::warn!(server = %self.spec.name, "mcp server is slow, starting runs without its tools");
        }
    }

    /// Lists the tools: in an open session if the server has announced a change, otherwise in a new
    /// session.
    async fn discover_tools(&self) -> Result<Vec<ListedTool>, McpError> {
        let list_changed = self.tool_list_change.take();
        if let Some(open) = self.shared.pool.find_open(self.id).filter(|_| list_changed)
            && let Ok(tools) = open.list().await
        {
            return Ok(usable_tools(&self.spec, tools));
        }
        // The server may allow listing without a token.
        let token = self.token().await.unwrap_or_else(|error| {
            tracing::error!(server = %self.spec.name, %error, "cannot fetch the access token of an mcp server");
            None
        });
        let outcome = self.list_in_new_session(token).await;
        self.discard_rejected_token(&outcome);
        Ok(usable_tools(&self.spec, outcome?))
    }

    async fn list_in_new_session(&self, token: Option<HeaderValue>) -> Result<Vec<Tool>, McpError> {
        let session = self.open(self.shared_working_dir(), token).await?;
        let tools = session.list().await;
        self.shared.close_in_background(session.close());
        tools
    }
}

/// Guard of a running discovery. Marks it as finished when dropped.
struct DiscoveryAttempt<'a>(&'a Server);

impl DiscoveryAttempt<'_> {
    fn end(self, outcome: Result<Vec<ListedTool>, McpError>) {
        let Self(server) = self;
        match outcome {
            Ok(tools) => {
                let mut state = server.discovery.lock();
                (state.failures, state.is_known) = (0, true);
                drop(state);
                server.list.send_modify(|list| {
                    if list.version == 0 || *list.tools != *tools {
                        tracing::info!(server = %server.spec.name, tools = tools.len(), "discovered the tools of an mcp server");
                        list.version += 1;
                        list.tools = tools.into();
                    }
                });
            }
            Err(error) => {
                let mut state = server.discovery.lock();
                state.failures += 1;
                let failures = state.failures;
                drop(state);
                tracing::error!(server = %server.spec.name, %error, failures, "cannot discover the tools of an mcp server");
            }
        }
    }
}

impl Drop for DiscoveryAttempt<'_> {
    fn drop(&mut self) {
        let mut state = self.0.discovery.lock();
        state.started_at = None;
        state.finished_at = Some(Instant::now());
        drop(state);
        self.0.list.send_modify(|list| list.attempts += 1);
    }
}
