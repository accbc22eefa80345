//! Builds a client and its runtime from a configuration.

use std::path::PathBuf;
use std::sync::Arc;

use super::agent_tools::agent_tools;
use super::client::Client;
use super::error::ClientError;
use super::installation::Installation;
use super::options::ChatOptions;
use crate::agents::StaticResolver;
use crate::agents::custom::CustomAgents;
use crate::agents::lead::{LEAD_AGENT, LeadAgentSpec, LeadAgents, configured_models};
#[cfg(feature = "mcp")]
use crate::config::Variables;
use crate::config::{AppConfig, DatabaseBackend, ExtensionsFile};
use crate::documents::DocumentReader;
#[cfg(feature = "mcp")]
use crate::mcp::settings::McpPort;
#[cfg(feature = "mcp")]
use crate::mcp::{ConfiguredMcp, McpConfigSource, McpContext};
use crate::middlewares::{Middleware, with_file_changes};
use crate::models::{ChatModel, ModelCatalog};
use crate::runtime::in_memory::InMemoryStores;
use crate::runtime::runs::{RunLimits, RunsFacade, RuntimePorts};
use crate::runtime::threads::ThreadIndex;
use crate::sandbox::{CommandSandbox, FileHome, FileLimits, Mount, Mounts};
use crate::skills::{SkillChoice, SkillFolders, Skills};
use crate::tools::{DynTool, Tool, ToolRegistry, erase};
use crate::user_memory::{MemoryRules, UserMemories, UserMemoryStore};

/// Default name of the extensions file in the home.
const EXTENSIONS_FILE: &str = "extensions_config.json";

/// Builder of a client. Only the configuration is required: without a runtime all state is kept in
/// memory, and parts that are not set are unavailable.
///
/// ```
/// use std::sync::Arc;
///
/// use deerflow_harness::client::Client;
/// use deerflow_harness::config::AppConfig;
/// use deerflow_harness::ids::ThreadId;
/// use deerflow_harness::models::ScriptedModel;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::builder(AppConfig::default())
///     .model(Arc::new(ScriptedModel::default()))
///     .thinking(false)
///     .build()?;
/// let thread = ThreadId::parse("t1")?;
/// assert_eq!(client.chat("then say Hello.", &thread).await?, "Hello.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    config: Arc<AppConfig>,
    /// `true` if the configuration was read from a file. A warning is then logged if the configured
    /// database is not used.
    from_file: bool,
    runtime: Option<RuntimePorts>,
    threads: Option<Arc<dyn ThreadIndex>>,
    home: Option<PathBuf>,
    shared_skills: Option<PathBuf>,
    extensions: Option<PathBuf>,
    memories: Option<Arc<dyn UserMemoryStore>>,
    custom: Option<Arc<dyn CustomAgents>>,
    documents: Option<Arc<dyn DocumentReader>>,
    models: Vec<Arc<dyn ChatModel>>,
    tools: ToolRegistry,
    commands: Option<Arc<dyn CommandSandbox>>,
    mounts: Mounts,
    middlewares: Vec<Arc<dyn Middleware>>,
    skill_choice: SkillChoice,
    #[cfg(feature = "mcp")]
    variables: Variables,
    #[cfg(feature = "mcp")]
    program_variables: Vec<(String, String)>,
    options: ChatOptions,
}

impl ClientBuilder {
    pub(super) fn new(config: impl Into<Arc<AppConfig>>) -> Self {
        Self {
            config: config.into(),
            from_file: false,
            runtime: None,
            threads: None,
            home: None,
            shared_skills: None,
            extensions: None,
            memories: None,
            custom: None,
            documents: None,
            models: Vec::new(),
            tools: ToolRegistry::new(),
            commands: None,
            mounts: Mounts::default(),
            middlewares: Vec::new(),
            skill_choice: SkillChoice::All,
            #[cfg(feature = "mcp")]
            variables: Variables::default(),
            #[cfg(feature = "mcp")]
            program_variables: Vec::new(),
            options: ChatOptions::default(),
        }
    }

    /// Sets the ports of the runtime, such as stores and checkpointer; its `agents` are replaced by
    /// those of the client.
    pub fn runtime(mut self, parts: RuntimePorts) -> Self {
        self.runtime = Some(parts);
        self
    }

    /// Sets the thread index of the runtime. Without it, a client with a custom runtime lists no
    /// threads and supports no goals. The in-memory runtime has its own index.
    pub fn threads(mut self, index: Arc<dyn ThreadIndex>) -> Self {
        self.threads = Some(index);
        self
    }

    /// Sets the folder of thread files, user skills and the extensions file, with the same layout
    /// as a server's home.
    pub fn home(mut self, folder: impl Into<PathBuf>) -> Self {
        self.home = Some(folder.into());
        self
    }

    /// Sets the folder that contains the shared skills in `public`; default: `skills` in the home.
    /// Skills require a home.
    pub fn skills(mut self, folder: impl Into<PathBuf>) -> Self {
        self.shared_skills = Some(folder.into());
        self
    }

    /// Sets the file that enables and disables skills and MCP servers; default:
    /// `extensions_config.json` in the home.
    pub fn extensions(mut self, file: impl Into<PathBuf>) -> Self {
        self.extensions = Some(file.into());
        self
    }

    /// Sets the store of user memories. Runs are queued there for a
    /// [`MemoryWorker`](crate::user_memory::MemoryWorker), which extracts facts.
    pub fn memories(mut self, store: Arc<dyn UserMemoryStore>) -> Self {
        self.memories = Some(store);
        self
    }

    /// Sets the store of users' custom agents.
    pub fn custom_agents(mut self, agents: Arc<dyn CustomAgents>) -> Self {
        self.custom = Some(agents);
        self
    }

    /// Sets the converter from uploaded documents to Markdown, which is used if the configuration
    /// enables conversion.
    pub fn documents(mut self, reader: Arc<dyn DocumentReader>) -> Self {
        self.documents = Some(reader);
        self
    }

    /// Adds a model. It replaces the configured model of the same name, or is added to the
    /// configured ones. [`Client::list_models`] lists only configured models.
    pub fn model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.models.push(model);
        self
    }

    /// Adds a tool. Configured tools that need more than a home, such as `bash`, are added this
    /// way.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.add(erase(tool));
        self
    }

    /// Records that the configuration was read from a file.
    #[cfg(feature = "config-file")]
    pub(super) fn read_from_file(mut self) -> Self {
        self.from_file = true;
        self
    }

    /// Adds tools; [`erase`] converts typed ones.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Self {
        tools.into_iter().for_each(|tool| self.tools.add(tool));
        self
    }

    /// Sets the sandbox that runs `bash` commands. Agents then have the tool `bash`, unless the
    /// configuration lists tools without it. Commands see the same files and skills as the file
    /// tools. Requires a home.
    pub fn commands(mut self, sandbox: Arc<dyn CommandSandbox>) -> Self {
        self.commands = Some(sandbox);
        self
    }

    /// Sets host folders that file tools see in every thread. A command sandbox receives its mounts
    /// when it is created.
    pub fn mounts(mut self, mounts: impl IntoIterator<Item = Mount>) -> Self {
        self.mounts = Mounts::new(mounts);
        self
    }

    /// Adds a middleware; its name determines its position in the chain.
    pub fn middleware(mut self, middleware: Arc<dyn Middleware>) -> Self {
        self.middlewares.push(middleware);
        self
    }

    /// Restricts agents to these skills, of those that are enabled.
    pub fn available_skills<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.skill_choice = SkillChoice::Only(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the values of `$NAME` references of MCP servers in the extensions file; default: none.
    #[cfg(feature = "mcp")]
    pub fn variables(mut self, variables: Variables) -> Self {
        self.variables = variables;
        self
    }

    /// Sets environment variables, such as `PATH`, of every program that provides tools; default:
    /// none.
    #[cfg(feature = "mcp")]
    pub fn program_variables(
        mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        self.program_variables = variables.into_iter().collect();
        self
    }

    /// Sets the default options of requests.
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the model entry to use.
    pub fn model_name(mut self, name: impl Into<String>) -> Self {
        self.options.model_name = Some(name.into());
        self
    }

    /// Enables or disables thinking, if the model supports it; default: enabled.
    pub fn thinking(mut self, enabled: bool) -> Self {
        self.options.thinking_enabled = enabled;
        self
    }

    /// Allows or forbids delegation to subagents.
    pub fn subagents(mut self, enabled: bool) -> Self {
        self.options.subagent_enabled = enabled;
        self
    }

    /// Enables or disables planning with a to-do list.
    pub fn plan_mode(mut self, enabled: bool) -> Self {
        self.options.plan_mode = enabled;
        self
    }

    /// Sets the custom agent to use.
    pub fn agent_name(mut self, name: impl Into<String>) -> Self {
        self.options.agent_name = Some(name.into());
        self
    }

    /// Builds the runtime and the client. Must be called within a Tokio runtime; agents are
    /// assembled on first use.
    ///
    /// # Errors
    /// [`ClientError::Config`] for an invalid configuration, and the errors of building a part.
    pub fn build(self) -> Result<Client, ClientError> {
        let violations = self.config.violations();
        if !violations.is_empty() {
            return Err(ClientError::Config(violations));
        }
        let config = self.config;
        let (parts, threads) = match self.runtime {
            Some(parts) => (parts, self.threads),
            None => {
                if self.from_file && config.database.backend != DatabaseBackend::Memory {
                    tracing::warn!(
                        "no runtime was set: this client keeps runs and threads in memory and ignores the configured database"
                    );
                }
                let stores = InMemoryStores::new();
                let threads: Arc<dyn ThreadIndex> = Arc::new(stores.clone());
                (
                    stores.runtime(Arc::new(StaticResolver::new()))?,
                    Some(threads),
                )
            }
        };
        let named = self
            .extensions
            .or_else(|| self.home.as_ref().map(|home| home.join(EXTENSIONS_FILE)));
        let extensions = named.map(|file| Arc::new(ExtensionsFile::at(file)));
        let skills = self
            .home
            .clone()
            .zip(extensions.clone())
            .map(|(home, extensions)| {
                let folders = SkillFolders {
                    shared: self.shared_skills.unwrap_or_else(|| home.join("skills")),
                    home,
                };
                Skills::new(
                    folders,
                    extensions,
                    config.extensions.clone(),
                    parts.clock.clone(),
                )
            });
        let files = self.home.as_deref().map(|home| {
            let files = FileHome::new(home, FileLimits::default()).with_mounts(self.mounts);
            if let Some(skills) = &skills {
                files.with_skill_mounts(Arc::new(skills.clone()))
            } else {
                files
            }
        });
        #[cfg(feature = "mcp")]
        let mcp = match extensions {
            Some(file) => {
                let source = McpConfigSource {
                    file,
                    config: Arc::new(config.clone()),
                    variables: self.variables,
                    launchers: Vec::new(),
                };
                let context = McpContext {
                    files: files.clone(),
                    variables: self.program_variables,
                    tasks: parts.tasks.clone(),
                };
                Some(Arc::new(ConfiguredMcp::open(source, context)?))
            }
            None => None,
        };
        let memories = self
            .memories
            .map(|store| UserMemories::new(store, parts.clock.clone(), parts.ids.clone()));
        let catalog = ModelCatalog::from_config(&config.models, parts.clock.clone());
        let models = configured_models(
            &config,
            self.models
                .into_iter()
                .fold(catalog, ModelCatalog::with_model),
        );
        let spec = LeadAgentSpec {
            tools: agent_tools(self.tools, self.commands, &config, files.as_ref()),
            #[cfg(feature = "mcp")]
            live_tools: mcp.as_ref().map(|mcp| mcp.tools()),
            custom: self.custom,
            files: files.clone(),
            skills: skills.clone(),
            skill_choice: self.skill_choice,
            memory: memories
                .clone()
                .map(|memories| (memories, MemoryRules::from(&config.memory))),
            middlewares: self.middlewares,
            ..LeadAgentSpec::configured(&config, &models)
        };
        let lead = LeadAgents::new(spec).with_background_checks(parts.tasks.clone());
        let agents = Arc::new(StaticResolver::new().with(LEAD_AGENT, lead));
        let limits = RunLimits::from(&*config);
        let parts = with_file_changes(RuntimePorts { agents, ..parts }, files.as_ref());
        let runs = RunsFacade::new(parts, limits);
        let installation = Installation {
            config: Some(Arc::new(config)),
            files,
            file_quota: None,
            documents: self.documents,
            skills,
            memories,
            threads,
            #[cfg(feature = "mcp")]
            mcp: mcp.map(|mcp| mcp as Arc<dyn McpPort>),
        };
        Ok(Client::new(Arc::new(runs))
            .options(self.options)
            .installation(installation))
    }
}
