//! Tool `invoke_acp_agent`: delegates a task to an ACP agent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::error::AcpError;
use super::policy::stop_note;
use super::session::{TRAFFIC_QUOTA, Task, run_session};
use super::updates::AgentOutput;
use crate::child_process::{ConnectionHealth, WorkingDir};
use crate::config::AcpAgentConfig;
use crate::mcp::{McpConfig, ServerSpec};
use crate::runtime::agent::RunContext;
use crate::sandbox::run_blocking;
use crate::sandbox::{FileFailure, FileHome, Root, SkillMounts, ThreadDirs, masking};
use crate::tools::{Tool, ToolContext, ToolError, ToolOutput};

/// Maximum number of agents that run at once in this process.
const MAX_CONCURRENT_AGENTS: usize = 64;
/// Directory for temporary files, relative to the thread's directory.
const TMP: [&str; 2] = ["acp", "tmp"];
/// Result of an agent that sends no text.
const NO_RESPONSE: &str = "(no response)";

/// Dependencies that all ACP agents share.
#[derive(Debug)]
pub struct AcpContext {
    files: FileHome,
    variables: Vec<(String, String)>,
    servers: Option<Arc<dyn McpConfig>>,
    permits: Semaphore,
}

impl AcpContext {
    /// Creates the dependencies. Agents work in the threads' directories, get `variables` in
    /// addition to their own, and get the MCP servers of `servers`.
    pub fn new(
        files: FileHome,
        variables: Vec<(String, String)>,
        servers: Option<Arc<dyn McpConfig>>,
    ) -> Self {
        Self {
            files,
            variables,
            servers,
            permits: Semaphore::new(MAX_CONCURRENT_AGENTS),
        }
    }

    /// Returns the currently configured servers. Skips invalid entries, because the MCP module
    /// reports them.
    async fn servers(&self) -> Vec<ServerSpec> {
        let Some(config) = &self.servers else {
            return Vec::new();
        };
        let Some(extensions) = config.extensions().await else {
            return Vec::new();
        };
        ServerSpec::all(&extensions)
            .into_iter()
            .filter_map(|(_, spec)| spec.ok())
            .collect()
    }
}

/// Tool that delegates a task to an ACP agent.
#[derive(Debug)]
pub struct InvokeAcpAgent {
    agents: BTreeMap<String, AcpAgentConfig>,
    description: String,
    context: Arc<AcpContext>,
}

impl InvokeAcpAgent {
    /// Creates the tool for these agents. Returns `None` if there are none.
    pub fn new(agents: BTreeMap<String, AcpAgentConfig>, context: Arc<AcpContext>) -> Option<Self> {
        let listed = agents
            .iter()
            .map(|(name, agent)| format!("- {name}: {}", agent.description.trim()))
            .collect::<Vec<_>>()
            .join("\n");
        let description = format!(
            "Hand a whole task to another agent, a program with a model, tools and a folder of its own, and wait for its report. It knows \
             nothing of this conversation and sees none of its files, so the prompt has to say everything: the goal, the material, what \
             it shall leave behind. Files that it leaves are read under /mnt/acp-workspace, also after a failure. Not for questions that \
             you can answer and steps that you can do yourself. The agents:\n{listed}"
        );
        (!agents.is_empty()).then_some(Self {
            agents,
            description,
            context,
        })
    }

    /// Returns the names of the agents.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.agents.keys().map(String::as_str)
    }

    /// Runs an agent in the working directory of the run's thread, and returns its answer.
    ///
    /// # Errors
    /// The text for the model: the agent is unknown or failed, or the prompt is empty.
    pub async fn run(
        &self,
        name: &str,
        prompt: &str,
        run: &RunContext,
    ) -> Result<String, ToolError> {
        let Some(agent) = self.agents.get(name) else {
            let names = self.names().collect::<Vec<_>>().join(", ");
            return Err(ToolError::for_model(format!(
                "Error: there is no agent {name:?}. Available agents: {names}."
            )));
        };
        if prompt.trim().is_empty() {
            return Err(ToolError::for_model(
                "Error: the prompt is empty. Say the whole task in it.",
            ));
        }
        let files = self
            .context
            .files
            .thread(&run.actor.user_id, &run.thread_id);
        let dirs = files.blocking().dirs().clone();
        let tmp = dirs.private_dir(&TMP).display().to_string();
        let mask = |text: &str| {
            masking::to_virtual(text, &dirs, &SkillMounts::default()).replace(&tmp, "/tmp")
        };
        let ended = self.run_agent(name, agent, prompt, dirs.clone()).await;
        ended.map(|text| mask(&text)).map_err(|failure| {
            tracing::warn!(agent = name, error = %failure.error, stderr_tail = %failure.stderr_tail, run_id = %run.run_id, "acp agent failed");
            ToolError::for_model(mask(&failure.text(name)))
        })
    }

    async fn run_agent(
        &self,
        name: &str,
        agent: &AcpAgentConfig,
        prompt: &str,
        dirs: ThreadDirs,
    ) -> Result<String, Failure> {
        let _permit = self
            .context
            .permits
            .try_acquire()
            .map_err(|_full| AcpError::AtCapacity(MAX_CONCURRENT_AGENTS))?;
        let (working_dir, workspace) = run_blocking(move || working_dirs(&dirs))
            .await
            .map_err(|failure| AcpError::Folder(failure.to_string()))?;
        let servers = self.context.servers().await;
        let task = Task {
            name,
            agent,
            variables: &self.context.variables,
            working_dir,
            workspace,
            servers: &servers,
            prompt,
        };
        let (health, output) = (
            ConnectionHealth::with_quota(TRAFFIC_QUOTA),
            Arc::new(AgentOutput::new(agent.auto_approve_permissions)),
        );
        match run_session(&task, &health, &output).await {
            Ok(stop) => {
                let text = Some(output.text())
                    .filter(|text| !text.is_empty())
                    .unwrap_or_else(|| NO_RESPONSE.to_owned());
                let notes = [output.denied(), stop_note(stop).map(str::to_owned)];
                Ok([Some(text)]
                    .into_iter()
                    .chain(notes)
                    .flatten()
                    .collect::<Vec<_>>()
                    .join("\n\n"))
            }
            Err(error) => Err(Failure {
                error,
                stderr_tail: health.stderr_tail(),
                output_tail: output.tail(),
                denied: output.denied(),
            }),
        }
    }
}

/// Arguments of `invoke_acp_agent`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct InvokeAcpAgentArgs {
    /// The agent's name, one of those listed.
    pub agent: String,
    /// The whole task, in words that need no other: it is all that the agent gets.
    pub prompt: String,
}

impl Tool for InvokeAcpAgent {
    type Args = InvokeAcpAgentArgs;

    fn name(&self) -> &str {
        "invoke_acp_agent"
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn is_foreign(&self) -> bool {
        true
    }

    async fn call(
        &self,
        args: InvokeAcpAgentArgs,
        ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let name = args.agent.trim();
        self.run(name, &args.prompt, &ctx.run)
            .await
            .map(ToolOutput::text)
    }
}

/// Creates the agent's working directory and directory for temporary files, and returns them with
/// the session's working directory. They are deleted with the thread.
fn working_dirs(dirs: &ThreadDirs) -> Result<(WorkingDir, PathBuf), FileFailure> {
    dirs.create(Root::AcpWorkspace)?;
    // ACP requires an absolute path.
    let workspace = std::path::absolute(dirs.host_path(Root::AcpWorkspace))?;
    let tmp = std::path::absolute(dirs.create_private_dir(&TMP)?)?;
    Ok((
        WorkingDir {
            cwd: Some(workspace.clone()),
            tmp: Some(tmp),
        },
        workspace,
    ))
}

/// Failed agent call.
#[derive(Debug)]
struct Failure {
    error: AcpError,
    /// End of the program's stderr.
    stderr_tail: String,
    /// End of the agent's text.
    output_tail: String,
    /// Report of the permissions that were denied.
    denied: Option<String>,
}

impl From<AcpError> for Failure {
    fn from(error: AcpError) -> Self {
        Self {
            error,
            stderr_tail: String::new(),
            output_tail: String::new(),
            denied: None,
        }
    }
}

impl Failure {
    /// Returns the text for the model.
    fn text(&self, name: &str) -> String {
        let mut parts = vec![format!(
            "Error: the agent {name} could not do this: {}.",
            self.error
        )];
        parts.extend(
            (!self.stderr_tail.is_empty())
                .then(|| format!("Standard error of its program:\n{}", self.stderr_tail)),
        );
        parts.extend(
            (!self.output_tail.is_empty())
                .then(|| format!("Its answer until then:\n{}", self.output_tail)),
        );
        parts.extend(self.denied.clone());
        parts.join("\n\n")
    }
}
