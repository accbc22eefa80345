//! Records the files of a thread before the first tool call of a run that may change them, and
//! reports the changes at the end of the run.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::hooks::Hooks;
use super::middleware::{Middleware, ToolNext};
use crate::ids::RunId;
use crate::messages::ToolCall;
use crate::runtime::runs::{RunFileChanges, RuntimePorts};
use crate::sandbox::{FileHome, RunSnapshots};
use crate::tools::{Effect, ToolContext, ToolError, ToolOutput, ToolRegistry};

/// Takes a snapshot before calls with an effect. Calls of tools that are unknown here, such as
/// dynamic ones, may have an effect.
#[derive(Debug, Clone)]
pub struct FileChangesMiddleware {
    files: FileHome,
    tools: ToolRegistry,
}

impl FileChangesMiddleware {
    /// Creates the middleware for an agent with these tools.
    pub fn new(files: FileHome, tools: ToolRegistry) -> Self {
        Self { files, tools }
    }

    fn may_change_files(&self, call: &ToolCall) -> bool {
        let tool = self.tools.get(&call.name);
        tool.is_none_or(|tool| tool.effect(&call.args) != Effect::Pure)
    }
}

#[async_trait]
impl Middleware for FileChangesMiddleware {
    fn name(&self) -> &str {
        "FileChangesMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_TOOL
    }

    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        ctx: &ToolContext,
        next: ToolNext<'_>,
    ) -> Result<ToolOutput, ToolError> {
        if self.may_change_files(call) {
            let run = &ctx.run;
            let files = self.files.thread(&run.actor.user_id, &run.thread_id);
            if let Err(error) = self.files.snapshots().take_once(&run.run_id, &files).await {
                tracing::warn!(%error, "cannot record the files of the thread");
            }
        }
        next.run(call, ctx).await
    }
}

/// Reports the changes since the snapshots of [`FileChangesMiddleware`].
#[derive(Debug, Clone)]
pub struct SnapshotFileChanges(RunSnapshots);

impl SnapshotFileChanges {
    /// Creates the reports of runs on these files.
    pub fn new(files: &FileHome) -> Self {
        Self(files.snapshots().clone())
    }
}

#[async_trait]
impl RunFileChanges for SnapshotFileChanges {
    async fn take(&self, run: &RunId) -> Option<Value> {
        let report = match self.0.changes(run).await {
            Ok(report) => report?,
            Err(error) => {
                tracing::warn!(%error, "cannot compare the files of the thread");
                return None;
            }
        };
        serde_json::to_value(report)
            .inspect_err(|error| tracing::warn!(%error, "cannot encode the changes of files"))
            .ok()
    }

    fn discard(&self, run: &RunId) {
        self.0.remove(run);
    }
}

/// Returns the ports with the changes of these files, if there are files.
pub(crate) fn with_file_changes(ports: RuntimePorts, files: Option<&FileHome>) -> RuntimePorts {
    match files {
        Some(files) => RuntimePorts {
            file_changes: Arc::new(SnapshotFileChanges::new(files)),
            ..ports
        },
        None => ports,
    }
}
