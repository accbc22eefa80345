//! The typed configuration: one section per file, defaults and bounds beside the fields.
//!
//! Values are plain and frozen once built: whoever needs them receives an `Arc<AppConfig>`. Reading files and
//! resolving `$VARIABLES` is in `config_file`; watching for changes belongs to the application.
//!
//! To add a section: write `section.rs` with a struct that derives `Deserialize` with `#[serde(default)]`, give it a
//! `check` when values have bounds, add a field and a call below, name its keys in `config_file`'s table of
//! known keys and in `config.example.yaml` (a test compares them).

mod acp_agents;
mod auth;
mod check;
mod checkpointer;
mod database;
mod extensions;
mod file_signature;
mod folder_lock;
mod guards;
mod input_polish;
mod llm_call;
mod logging;
mod loop_detection;
mod memory;
mod models;
mod open_keys;
mod retention;
mod run_events;
mod run_ownership;
mod runs;
mod sandbox;
mod skills;
mod source;
mod store;
mod stream_bridge;
mod subagents;
mod suggestions;
mod summarization;
mod switches;
mod title;
mod tool_output;
mod tool_search;
mod tools;
mod unresolved;
mod uploads;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

pub use acp_agents::AcpAgentConfig;
pub use auth::{AuthConfig, LocalAuthConfig};
use check::Checker;
pub use check::{Violation, dotted};
pub use checkpointer::{CheckpointerConfig, ThreadTtlConfig};
pub use database::{
    CheckpointCacheConfig, CheckpointCacheKind, CheckpointChannelMode, CheckpointDeltaConfig,
    CheckpointGraphCacheConfig, DEFAULT_SQLITE_DIR, DatabaseBackend, DatabaseConfig,
};
pub use extensions::{Extensions, ExtensionsError, ExtensionsFile, MCP_SERVERS, SKILLS};
pub(crate) use file_signature::FileSignature;
pub(crate) use folder_lock::hold_folder;
#[cfg(feature = "http")]
pub(crate) use folder_lock::try_hold_folder;
pub use guards::{
    GuardrailProviderConfig, GuardrailsConfig, ReadBeforeWriteConfig, SafetyFinishReasonConfig,
    TokenBudgetConfig,
};
pub use input_polish::InputPolishConfig;
pub use llm_call::{CircuitBreakerConfig, LlmCallConfig};
pub use logging::{LogFormat, LogLevel, LoggingConfig, LoggingEnhanceConfig};
pub use loop_detection::{LoopDetectionConfig, ToolFrequency};
pub use memory::{MemoryConfig, MemoryMode};
pub use models::{ModelConfig, PricingConfig};
pub use open_keys::OpenKeys;
pub use retention::RetentionConfig;
pub use run_events::{RunEventsBackend, RunEventsConfig};
pub use run_ownership::{RunOwnershipConfig, RunRecovery};
pub use runs::RunsConfig;
pub use sandbox::{
    OverflowPolicy, SandboxConfig, SandboxLimitsConfig, SandboxNetworkConfig,
    SandboxOwnershipConfig, SandboxOwnershipKind, VolumeMountConfig,
};
pub use skills::SkillsConfig;
pub use source::{ConfigSource, Variables};
pub use store::{EmbedConfig, EmbedEntryConfig, StoreConfig, StoreIndexConfig, StoreTtlConfig};
pub use stream_bridge::{StreamBridgeConfig, StreamBridgeKind};
pub use subagents::{
    CustomSubagentConfig, SubagentBudgetConfig, SubagentOverrideConfig, SubagentsConfig,
};
pub use suggestions::SuggestionsConfig;
pub use summarization::{ContextSize, ContextUnit, SummarizationConfig, Triggers};
pub use switches::{AgentsApiConfig, TestingConfig, TokenUsageConfig, WebhooksConfig};
pub use title::TitleConfig;
pub use tool_output::ToolOutputConfig;
pub use tool_search::ToolSearchConfig;
pub use tools::{ToolConfig, ToolGroupConfig};
pub use unresolved::{MissingVariable, UnresolvedVariable};
pub use uploads::UploadsConfig;

/// The version of the configuration's layout that this build writes.
pub const CURRENT_CONFIG_VERSION: u64 = 34;

/// Everything that `config.yaml` decides.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AppConfig {
    /// The layout's version; 0 when the file does not say.
    pub config_version: u64,
    /// How much is logged.
    pub log_level: LogLevel,
    /// The shape of the log.
    pub logging: LoggingConfig,
    /// Most steps of one run.
    pub max_recursion_limit: u64,
    /// The models, the first being the default.
    pub models: Vec<ModelConfig>,
    /// The tools.
    pub tools: Vec<ToolConfig>,
    /// The groups of tools.
    pub tool_groups: Vec<ToolGroupConfig>,
    /// Where tools run.
    pub sandbox: SandboxConfig,
    /// Titles of threads.
    pub title: TitleConfig,
    /// Follow-up questions.
    pub suggestions: SuggestionsConfig,
    /// Rewriting of drafts.
    pub input_polish: InputPolishConfig,
    /// Shortening of long conversations.
    pub summarization: SummarizationConfig,
    /// Long-term memory.
    pub memory: MemoryConfig,
    /// Limits of attachments.
    pub uploads: UploadsConfig,
    /// Whether usage is shown.
    pub token_usage: TokenUsageConfig,
    /// Whether agents can be managed over HTTP.
    pub agents_api: AgentsApiConfig,
    /// Retries of model calls.
    pub llm_call: LlmCallConfig,
    /// When a failing provider is left alone.
    pub circuit_breaker: CircuitBreakerConfig,
    /// When repeated tool calls end a run.
    pub loop_detection: LoopDetectionConfig,
    /// What becomes of long results.
    pub tool_output: ToolOutputConfig,
    /// Tools that models have to look for.
    pub tool_search: ToolSearchConfig,
    /// What a run may cost.
    pub token_budget: TokenBudgetConfig,
    /// Whether files are read before they are changed.
    pub read_before_write: ReadBeforeWriteConfig,
    /// Answers that a safety filter broke off.
    pub safety_finish_reason: SafetyFinishReasonConfig,
    /// Agents that an agent sets to work.
    pub subagents: SubagentsConfig,
    /// Programs with an agent of their own that an agent may hand tasks to.
    pub acp_agents: BTreeMap<String, AcpAgentConfig>,
    /// Who decides whether a tool may be called.
    pub guardrails: GuardrailsConfig,
    /// Limits of runs.
    pub runs: RunsConfig,
    /// Leases on runs.
    pub run_ownership: RunOwnershipConfig,
    /// The journal of runs.
    pub run_events: RunEventsConfig,
    /// The store of everything durable.
    pub database: DatabaseConfig,
    /// How long threads stay.
    pub checkpointer: CheckpointerConfig,
    /// Long-term memory of users.
    pub store: StoreConfig,
    /// The road from runs to viewers.
    pub stream_bridge: StreamBridgeConfig,
    /// Calls that tell of a run's end.
    pub webhooks: WebhooksConfig,
    /// How long things stay that have no other end.
    pub retention: RetentionConfig,
    /// Sign-in.
    pub auth: AuthConfig,
    /// Skills.
    pub skills: SkillsConfig,
    /// What stands above the file of extensions.
    pub extensions: OpenKeys,
    /// What only test setups want.
    pub testing: TestingConfig,
    /// Sections without a type of their own yet, as written.
    #[serde(flatten)]
    pub other: OpenKeys,
}

impl Default for AppConfig {
    fn default() -> Self {
        Self {
            config_version: 0,
            log_level: LogLevel::default(),
            logging: LoggingConfig::default(),
            max_recursion_limit: 1000,
            models: Vec::new(),
            tools: Vec::new(),
            tool_groups: Vec::new(),
            sandbox: SandboxConfig::default(),
            title: TitleConfig::default(),
            suggestions: SuggestionsConfig::default(),
            input_polish: InputPolishConfig::default(),
            summarization: SummarizationConfig::default(),
            memory: MemoryConfig::default(),
            uploads: UploadsConfig::default(),
            token_usage: TokenUsageConfig::default(),
            agents_api: AgentsApiConfig::default(),
            llm_call: LlmCallConfig::default(),
            circuit_breaker: CircuitBreakerConfig::default(),
            loop_detection: LoopDetectionConfig::default(),
            tool_output: ToolOutputConfig::default(),
            tool_search: ToolSearchConfig::default(),
            token_budget: TokenBudgetConfig::default(),
            read_before_write: ReadBeforeWriteConfig::default(),
            safety_finish_reason: SafetyFinishReasonConfig::default(),
            subagents: SubagentsConfig::default(),
            acp_agents: BTreeMap::new(),
            guardrails: GuardrailsConfig::default(),
            runs: RunsConfig::default(),
            retention: RetentionConfig::default(),
            run_ownership: RunOwnershipConfig::default(),
            run_events: RunEventsConfig::default(),
            database: DatabaseConfig::default(),
            checkpointer: CheckpointerConfig::default(),
            store: StoreConfig::default(),
            stream_bridge: StreamBridgeConfig::default(),
            webhooks: WebhooksConfig::default(),
            auth: AuthConfig::default(),
            skills: SkillsConfig::default(),
            extensions: OpenKeys::default(),
            testing: TestingConfig::default(),
            other: OpenKeys::default(),
        }
    }
}

impl AppConfig {
    /// The model entry called `name`, or the first when no name is given.
    pub fn model(&self, name: Option<&str>) -> Option<&ModelConfig> {
        match name {
            None => self.models.first(),
            Some(name) => self.models.iter().find(|model| model.name == name),
        }
    }

    /// A section that has no type of its own yet.
    pub fn untyped(&self, section: &str) -> Option<&Value> {
        self.other.get(section)
    }

    /// Every value that is out of its bounds; empty for a usable configuration.
    pub fn violations(&self) -> Vec<Violation> {
        let mut check = Checker::default();
        check.within("max_recursion_limit", self.max_recursion_limit, 1..);
        check.under("models", |check| models::check_all(&self.models, check));
        check.under("tools", |check| tools::check_all(&self.tools, check));
        check.under("tool_groups", |check| {
            tools::check_groups(&self.tool_groups, check)
        });
        check.under("sandbox", |check| self.sandbox.check(check));
        check.under("title", |check| self.title.check(check));
        check.under("suggestions", |check| self.suggestions.check(check));
        check.under("input_polish", |check| self.input_polish.check(check));
        check.under("summarization", |check| self.summarization.check(check));
        check.under("memory", |check| self.memory.check(check));
        check.under("uploads", |check| self.uploads.check(check));
        check.under("llm_call", |check| self.llm_call.check(check));
        check.under("circuit_breaker", |check| self.circuit_breaker.check(check));
        check.under("loop_detection", |check| self.loop_detection.check(check));
        check.under("tool_output", |check| self.tool_output.check(check));
        check.under("tool_search", |check| self.tool_search.check(check));
        check.under("token_budget", |check| self.token_budget.check(check));
        check.under("subagents", |check| self.subagents.check(check));
        check.under("acp_agents", |check| {
            self.acp_agents
                .iter()
                .for_each(|(name, agent)| agent.check(name, check))
        });
        check.under("guardrails", |check| self.guardrails.check(check));
        check.under("runs", |check| self.runs.check(check));
        check.under("retention", |check| {
            self.retention.check(self.run_events.backend, check)
        });
        check.under("run_ownership", |check| self.run_ownership.check(check));
        check.under("database", |check| self.database.check(check));
        check.under("checkpointer", |check| self.checkpointer.check(check));
        check.under("store", |check| self.store.check(check));
        check.under("stream_bridge", |check| self.stream_bridge.check(check));
        check.into_violations()
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
