//! A client over a runtime of its own, from a configuration.

use std::path::PathBuf;
use std::sync::Arc;

use super::client::Client;
use super::error::ClientError;
use super::installation::Installation;
use super::options::ChatOptions;
use crate::agents::StaticResolver;
use crate::agents::custom::CustomAgents;
use crate::agents::lead::{
    LEAD_AGENT, LeadAgentSpec, LeadAgents, USUAL_FILE_TOOLS, bash_tool, configured_models,
    file_tool, kind_of,
};
#[cfg(feature = "mcp")]
use crate::config::Variables;
use crate::config::{AppConfig, DatabaseBackend, ExtensionsFile};
use crate::documents::DocumentReader;
#[cfg(feature = "mcp")]
use crate::mcp::settings::McpPort;
#[cfg(feature = "mcp")]
use crate::mcp::{ConfiguredMcp, McpPlace, McpSurroundings};
use crate::memory::{Memories, MemoryRules, MemoryStore};
use crate::middlewares::Middleware;
use crate::models::{ChatModel, ModelCatalog};
use crate::runtime::memory::MemoryStores;
use crate::runtime::runs::{RunLimits, RunsFacade, RuntimeParts};
use crate::runtime::threads::ThreadIndex;
use crate::sandbox::{CommandSandbox, FileHome, FileLimits, Mount, Mounts};
use crate::skills::{SkillChoice, SkillPlaces, Skills};
use crate::tools::builtins::PresentFiles;
use crate::tools::{DynTool, Tool, ToolRegistry, erase};

/// The file of extensions in a home, where nobody says otherwise.
const EXTENSIONS_FILE: &str = "extensions_config.json";
/// The kind of the tool of commands.
const BASH: &str = "bash";

/// What a client is made of. Only the configuration is needed: without a runtime everything is kept in memory, and parts that are not
/// named are not there.
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    config: Arc<AppConfig>,
    /// Whether a person wrote the configuration, who may expect its database to be opened.
    from_file: bool,
    runtime: Option<RuntimeParts>,
    threads: Option<Arc<dyn ThreadIndex>>,
    home: Option<PathBuf>,
    shared_skills: Option<PathBuf>,
    extensions: Option<PathBuf>,
    memories: Option<Arc<dyn MemoryStore>>,
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

    /// The stores, the checkpointer and whatever else a runtime is made of; its `agents` are replaced by those of the client.
    pub fn runtime(mut self, parts: RuntimeParts) -> Self {
        self.runtime = Some(parts);
        self
    }

    /// The threads of the runtime as their users find them: without it a client over a runtime of one's own lists none and knows no
    /// goals. A runtime in memory has its own.
    pub fn threads(mut self, index: Arc<dyn ThreadIndex>) -> Self {
        self.threads = Some(index);
        self
    }

    /// The folder of threads' files, users' skills and the file of extensions, as a server has it.
    pub fn home(mut self, folder: impl Into<PathBuf>) -> Self {
        self.home = Some(folder.into());
        self
    }

    /// The folder of the installation's own skills, in `public`; `skills` in the home when nobody says. Skills need a home.
    pub fn skills(mut self, folder: impl Into<PathBuf>) -> Self {
        self.shared_skills = Some(folder.into());
        self
    }

    /// The file that skills and MCP servers are switched in; `extensions_config.json` in the home when nobody says.
    pub fn extensions(mut self, file: impl Into<PathBuf>) -> Self {
        self.extensions = Some(file.into());
        self
    }

    /// Where memories are kept. Runs are noted there, to be learned from by a [`MemoryWorker`](crate::memory::MemoryWorker).
    pub fn memories(mut self, store: Arc<dyn MemoryStore>) -> Self {
        self.memories = Some(store);
        self
    }

    /// Where the agents of users are kept.
    pub fn custom_agents(mut self, agents: Arc<dyn CustomAgents>) -> Self {
        self.custom = Some(agents);
        self
    }

    /// What makes Markdown of uploaded documents, if the configuration wants that.
    pub fn documents(mut self, reader: Arc<dyn DocumentReader>) -> Self {
        self.documents = Some(reader);
        self
    }

    /// A model of one's own, in the place of the entry of its name, or behind all entries, where clients do not see it listed.
    pub fn model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.models.push(model);
        self
    }

    /// A further tool: those of the configuration that need more than a home, such as `bash`, come this way.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.add(erase(tool));
        self
    }

    /// Says that the configuration was a file.
    #[cfg(feature = "config-file")]
    pub(super) fn read_from_file(mut self) -> Self {
        self.from_file = true;
        self
    }

    /// Further tools, typed ones by [`erase`].
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Self {
        tools.into_iter().for_each(|tool| self.tools.add(tool));
        self
    }

    /// What runs the commands of `bash`, which agents then have, unless the configuration lists tools and it is not among them. Commands
    /// see the files and skills that the file tools see. Needs a home.
    pub fn commands(mut self, sandbox: Arc<dyn CommandSandbox>) -> Self {
        self.commands = Some(sandbox);
        self
    }

    /// Folders of the host that file tools see on every thread. What runs commands is told of them where it is made.
    pub fn mounts(mut self, mounts: impl IntoIterator<Item = Mount>) -> Self {
        self.mounts = Mounts::new(mounts);
        self
    }

    /// A further middleware; it takes its place by its name.
    pub fn middleware(mut self, middleware: Arc<dyn Middleware>) -> Self {
        self.middlewares.push(middleware);
        self
    }

    /// The only skills that agents may have, of those that are on.
    pub fn available_skills<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.skill_choice = SkillChoice::Only(names.into_iter().map(Into::into).collect());
        self
    }

    /// What `$NAME`s of MCP servers stand for in the file of extensions; nothing when nobody says.
    #[cfg(feature = "mcp")]
    pub fn variables(mut self, variables: Variables) -> Self {
        self.variables = variables;
        self
    }

    /// Variables of every program that tools come from, such as `PATH`; none when nobody says.
    #[cfg(feature = "mcp")]
    pub fn program_variables(
        mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        self.program_variables = variables.into_iter().collect();
        self
    }

    /// How questions are asked that do not say it themselves.
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.options = options;
        self
    }

    /// The model entry that is asked.
    pub fn model_name(mut self, name: impl Into<String>) -> Self {
        self.options.model_name = Some(name.into());
        self
    }

    /// Whether the model thinks before it answers, where it can; it does when nobody says.
    pub fn thinking(mut self, enabled: bool) -> Self {
        self.options.thinking_enabled = enabled;
        self
    }

    /// Whether the agent may hand tasks to others.
    pub fn subagents(mut self, enabled: bool) -> Self {
        self.options.subagent_enabled = enabled;
        self
    }

    /// Whether the agent plans with a list of things to do.
    pub fn plan_mode(mut self, enabled: bool) -> Self {
        self.options.plan_mode = enabled;
        self
    }

    /// The custom agent that is asked.
    pub fn agent_name(mut self, name: impl Into<String>) -> Self {
        self.options.agent_name = Some(name.into());
        self
    }

    /// Puts the runtime together. Needs the threads of a Tokio runtime; agents are assembled when they are first asked.
    ///
    /// # Errors
    /// [`ClientError::Config`], and when a part cannot be made.
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
                        "this client keeps runs and threads in memory, not in the database of the configuration: it was given no runtime"
                    );
                }
                let stores = MemoryStores::new();
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
                let places = SkillPlaces {
                    shared: self.shared_skills.unwrap_or_else(|| home.join("skills")),
                    home,
                };
                Skills::new(
                    places,
                    extensions,
                    config.extensions.clone(),
                    parts.clock.clone(),
                )
            });
        let files = self.home.as_deref().map(|home| {
            let files = FileHome::new(home, FileLimits::default()).with_mounts(self.mounts);
            if let Some(skills) = &skills {
                files.with_shelves(Arc::new(skills.clone()))
            } else {
                files
            }
        });
        #[cfg(feature = "mcp")]
        let mcp = match extensions {
            Some(file) => {
                let place = McpPlace {
                    file,
                    config: Arc::new(config.clone()),
                    variables: self.variables,
                    launchers: Vec::new(),
                };
                let surroundings = McpSurroundings {
                    files: files.clone(),
                    variables: self.program_variables,
                    tasks: parts.tasks.clone(),
                };
                Some(Arc::new(ConfiguredMcp::open(place, surroundings)?))
            }
            None => None,
        };
        let memories = self
            .memories
            .map(|store| Memories::new(store, parts.clock.clone(), parts.ids.clone()));
        let catalog = ModelCatalog::from_config(&config.models, parts.clock.clone());
        let models = configured_models(
            &config,
            self.models
                .into_iter()
                .fold(catalog, ModelCatalog::with_model),
        );
        let spec = LeadAgentSpec {
            tools: tools(self.tools, self.commands, &config, files.as_ref()),
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
        let agents = Arc::new(StaticResolver::new().with(LEAD_AGENT, LeadAgents::new(spec)));
        let limits = RunLimits::from(&*config);
        let runs = RunsFacade::new(RuntimeParts { agents, ..parts }, limits);
        let installation = Installation {
            config: Some(Arc::new(config)),
            files,
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

/// The tools of the embedding program, then the configured ones that need no more than files and what runs commands.
fn tools(
    own: ToolRegistry,
    commands: Option<Arc<dyn CommandSandbox>>,
    config: &AppConfig,
    files: Option<&FileHome>,
) -> ToolRegistry {
    let Some(files) = files else { return own };
    let mut tools = own;
    let mut configured: Vec<&str> = config.tools.iter().map(kind_of).collect();
    if configured.is_empty() {
        configured.extend(USUAL_FILE_TOOLS);
        configured.extend(commands.is_some().then_some(BASH));
    }
    configured.retain(|kind| tools.get(kind).is_none());
    for kind in configured {
        let bash = || {
            commands
                .clone()
                .filter(|_| kind == BASH)
                .map(|sandbox| bash_tool(sandbox, config, files))
        };
        match file_tool(kind, config, files).or_else(bash) {
            Some(tool) => tools.add(tool),
            None => tracing::info!(kind, "a configured tool is left to the embedding program"),
        }
    }
    tools.add(erase(PresentFiles {
        home: files.clone(),
    }));
    tools
}
