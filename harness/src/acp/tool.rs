//! `invoke_acp_agent`: hands a task to an agent that is a program of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Semaphore;

use super::error::AcpError;
use super::policy::stop_note;
use super::said::Heard;
use super::talk::{ALLOWANCE, Task, talk};
use crate::config::AcpAgentConfig;
use crate::mcp::{McpConfig, ServerSpec};
use crate::programs::{Faults, Place};
use crate::sandbox::files::off_the_runtime;
use crate::sandbox::{Fault, FileHome, Root, Shelf, ThreadDirs, masking};
use crate::tools::{Tool, ToolContext, ToolError, ToolOutput};

/// How many agents may be at work at once in this process.
const MOST_AT_WORK: usize = 64;
/// The folder for temporary files, in a thread's.
const TMP: [&str; 2] = ["acp", "tmp"];
/// The result where an agent says nothing.
const NO_WORDS: &str = "(no response)";

/// What agents need of their surroundings, whatever the configuration says of them.
#[derive(Debug)]
pub struct AcpSurroundings {
    files: FileHome,
    variables: Vec<(String, String)>,
    servers: Option<Arc<dyn McpConfig>>,
    room: Semaphore,
}

impl AcpSurroundings {
    /// Agents work in the threads' folders, get these variables besides their own, and are handed the MCP servers of this configuration.
    pub fn new(
        files: FileHome,
        variables: Vec<(String, String)>,
        servers: Option<Arc<dyn McpConfig>>,
    ) -> Self {
        Self {
            files,
            variables,
            servers,
            room: Semaphore::new(MOST_AT_WORK),
        }
    }

    /// The servers as they are now; those that cannot be used are told of elsewhere.
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

/// Hands a task to another agent.
#[derive(Debug)]
pub struct InvokeAcpAgent {
    agents: BTreeMap<String, AcpAgentConfig>,
    description: String,
    around: Arc<AcpSurroundings>,
}

impl InvokeAcpAgent {
    /// The tool over these agents; nothing when there are none.
    pub fn new(
        agents: BTreeMap<String, AcpAgentConfig>,
        around: Arc<AcpSurroundings>,
    ) -> Option<Self> {
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
            around,
        })
    }

    async fn ask(
        &self,
        name: &str,
        agent: &AcpAgentConfig,
        prompt: &str,
        dirs: ThreadDirs,
    ) -> Result<String, Failure> {
        let _seat = self
            .around
            .room
            .try_acquire()
            .map_err(|_full| AcpError::Full(MOST_AT_WORK))?;
        let (place, workspace) = off_the_runtime(move || place(&dirs))
            .await
            .map_err(|fault| AcpError::Folder(fault.to_string()))?;
        let servers = self.around.servers().await;
        let task = Task {
            name,
            agent,
            variables: &self.around.variables,
            place,
            workspace,
            servers: &servers,
            prompt,
        };
        let (faults, heard) = (
            Faults::within(ALLOWANCE),
            Arc::new(Heard::new(agent.auto_approve_permissions)),
        );
        match talk(&task, &faults, &heard).await {
            Ok(stop) => {
                let text = Some(heard.text())
                    .filter(|text| !text.is_empty())
                    .unwrap_or_else(|| NO_WORDS.to_owned());
                let notes = [heard.refusals(), stop_note(stop).map(str::to_owned)];
                Ok([Some(text)]
                    .into_iter()
                    .chain(notes)
                    .flatten()
                    .collect::<Vec<_>>()
                    .join("\n\n"))
            }
            Err(error) => Err(Failure {
                error,
                complaints: faults.complaints(),
                rest: heard.rest(),
                refusals: heard.refusals(),
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
        let Some(agent) = self.agents.get(name) else {
            let known = self.agents.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(ToolError::for_model(format!(
                "Error: there is no agent {name:?}. These are there: {known}."
            )));
        };
        if args.prompt.trim().is_empty() {
            return Err(ToolError::for_model(
                "Error: the prompt is empty. Say the whole task in it.",
            ));
        }
        let files = self
            .around
            .files
            .thread(&ctx.run.actor.user_id, &ctx.run.thread_id);
        let dirs = files.blocking().dirs().clone();
        let tmp = dirs.apart(&TMP).display().to_string();
        let mask =
            |text: &str| masking::to_virtual(text, &dirs, &Shelf::default()).replace(&tmp, "/tmp");
        self.ask(name, agent, &args.prompt, dirs.clone()).await.map(|text| ToolOutput::text(mask(&text))).map_err(|failure| {
            tracing::warn!(agent = name, error = %failure.error, complaints = %failure.complaints, run_id = %ctx.run.run_id, "an acp agent failed");
            ToolError::for_model(mask(&failure.told(name)))
        })
    }
}

/// Where an agent begins, and where it works. Both go with the thread.
fn place(dirs: &ThreadDirs) -> Result<(Place, PathBuf), Fault> {
    dirs.create(Root::AcpWorkspace)?;
    // The protocol wants no other.
    let workspace = std::path::absolute(dirs.host_path(Root::AcpWorkspace))?;
    let tmp = std::path::absolute(dirs.create_apart(&TMP)?)?;
    Ok((
        Place {
            cwd: Some(workspace.clone()),
            tmp: Some(tmp),
        },
        workspace,
    ))
}

/// A task that was not done, and what is known of it.
#[derive(Debug)]
struct Failure {
    error: AcpError,
    /// What the program wrote to its errors last.
    complaints: String,
    /// What the agent said last.
    rest: String,
    /// Which permissions it did not get.
    refusals: Option<String>,
}

impl From<AcpError> for Failure {
    fn from(error: AcpError) -> Self {
        Self {
            error,
            complaints: String::new(),
            rest: String::new(),
            refusals: None,
        }
    }
}

impl Failure {
    /// What a model reads of it.
    fn told(&self, name: &str) -> String {
        let mut parts = vec![format!(
            "Error: the agent {name} could not do this: {}.",
            self.error
        )];
        parts.extend(
            (!self.complaints.is_empty())
                .then(|| format!("Its program complained:\n{}", self.complaints)),
        );
        parts.extend((!self.rest.is_empty()).then(|| format!("It had said:\n{}", self.rest)));
        parts.extend(self.refusals.clone());
        parts.join("\n\n")
    }
}
