//! Typed configuration: one file per section, with defaults and bounds next to the fields.
//!
//! A configuration is immutable and shared as `Arc<AppConfig>`. `config_file` reads files and
//! resolves `$VARIABLES`; the application watches for changes.
//!
//! To add a section: write `section.rs` with a struct that derives `Deserialize` with
//! `#[serde(default)]`, give it a `check` if values have bounds, add a field and a call below, and
//! add its keys to `config_file`'s table of known keys and to `config.example.yaml` (a test
//! compares them).

mod acp_agents;
mod auth;
mod authorization;
mod check;
mod checkpointer;
mod database;
mod extensions;
mod fair_permits;
mod file_signature;
mod flows;
mod folder_lock;
mod guards;
mod input_polish;
mod limits;
mod llm_call;
mod logging;
mod loop_detection;
mod memory;
mod models;
mod oidc;
mod open_keys;
mod quotas;
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
pub use authorization::{
    AccessRules, AuthorizationConfig, AuthorizationProviderConfig, COMMANDS, NameRule,
    RBAC_PROVIDER, RoleRules,
};
use check::Checker;
pub use check::{Violation, dotted};
pub use checkpointer::{CheckpointerConfig, ThreadTtlConfig};
pub use database::{
    CheckpointCacheConfig, CheckpointCacheKind, CheckpointChannelMode, CheckpointDeltaConfig,
    CheckpointGraphCacheConfig, DEFAULT_SQLITE_DIR, DatabaseBackend, DatabaseConfig,
};
pub use extensions::{Extensions, ExtensionsError, ExtensionsFile, MCP_SERVERS, SKILLS};
pub use fair_permits::{FairPermitsConfig, RoleWeights};
pub use file_signature::FileSignature;
pub use flows::{FlowAdaptersConfig, FlowsConfig, PiMonoConfig};
pub use folder_lock::lock_folder;
#[cfg(feature = "http")]
pub use folder_lock::try_lock_folder;
pub use guards::{
    GuardrailProviderConfig, GuardrailsConfig, ReadBeforeWriteConfig, SafetyFinishReasonConfig,
    TokenBudgetConfig,
};
pub use input_polish::InputPolishConfig;
pub use limits::LimitsConfig;
pub use llm_call::{CircuitBreakerConfig, LlmCallConfig};
pub use logging::{LogFormat, LogLevel, LoggingConfig, LoggingEnhanceConfig};
pub use loop_detection::{LoopDetectionConfig, ToolFrequency};
pub use memory::{MemoryConfig, MemoryMode};
pub use models::{ModelConfig, PricingConfig};
pub use oidc::{OidcConfig, OidcProviderConfig, TokenEndpointAuthMethod};
pub use open_keys::OpenKeys;
pub use quotas::QuotasConfig;
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

/// Version of the configuration layout that this build writes.
pub const CURRENT_CONFIG_VERSION: u64 = 34;

/// Content of `config.yaml`, with defaults for absent keys.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AppConfig {
    /// Version of the layout; 0 if the file does not state it.
    pub config_version: u64,
    /// Minimum level of log messages.
    pub log_level: LogLevel,
    /// Format of the log.
    pub logging: LoggingConfig,
    /// Maximum number of steps of one run.
    pub max_recursion_limit: u64,
    /// Models; the first is the default.
    pub models: Vec<ModelConfig>,
    /// Tools that agents can use.
    pub tools: Vec<ToolConfig>,
    /// Groups by which agents select tools.
    pub tool_groups: Vec<ToolGroupConfig>,
    /// Sandbox in which tools run commands and access files.
    pub sandbox: SandboxConfig,
    /// Titles of threads.
    pub title: TitleConfig,
    /// Follow-up questions.
    pub suggestions: SuggestionsConfig,
    /// Rewriting of drafts.
    pub input_polish: InputPolishConfig,
    /// Summarization of long conversations.
    pub summarization: SummarizationConfig,
    /// User memory: facts that are extracted from conversations.
    pub memory: MemoryConfig,
    /// Limits of uploads.
    pub uploads: UploadsConfig,
    /// Visibility of token usage.
    pub token_usage: TokenUsageConfig,
    /// Management of agents over HTTP.
    pub agents_api: AgentsApiConfig,
    /// Retries and limits of model calls.
    pub llm_call: LlmCallConfig,
    /// Circuit breaker for failing providers.
    pub circuit_breaker: CircuitBreakerConfig,
    /// Detection of repeated tool calls.
    pub loop_detection: LoopDetectionConfig,
    /// Handling of long tool results.
    pub tool_output: ToolOutputConfig,
    /// Deferred loading of MCP tools.
    pub tool_search: ToolSearchConfig,
    /// Token budget of a run.
    pub token_budget: TokenBudgetConfig,
    /// Requirement to read files before changing them.
    pub read_before_write: ReadBeforeWriteConfig,
    /// Detection of answers that a safety filter cut off.
    pub safety_finish_reason: SafetyFinishReasonConfig,
    /// Limits and kinds of subagents.
    pub subagents: SubagentsConfig,
    /// External agent programs.
    pub acp_agents: BTreeMap<String, AcpAgentConfig>,
    /// Graphs of agents.
    pub flows: FlowsConfig,
    /// Authorisation of tool calls.
    pub guardrails: GuardrailsConfig,
    /// Limits of runs.
    pub runs: RunsConfig,
    /// Maximum sizes of the fields that clients store.
    pub limits: LimitsConfig,
    /// Limits of what one user may store and run at a time.
    pub quotas: QuotasConfig,
    /// Turns of users who wait for limited work.
    pub fair_permits: FairPermitsConfig,
    /// Leases on runs.
    pub run_ownership: RunOwnershipConfig,
    /// Journal of runs.
    pub run_events: RunEventsConfig,
    /// Store of all durable data.
    pub database: DatabaseConfig,
    /// Retention of threads.
    pub checkpointer: CheckpointerConfig,
    /// Item store (LangGraph Store).
    pub store: StoreConfig,
    /// Transport of events from runs to viewers.
    pub stream_bridge: StreamBridgeConfig,
    /// Webhooks that report the end of runs.
    pub webhooks: WebhooksConfig,
    /// Retention of data without another expiry.
    pub retention: RetentionConfig,
    /// Sign-in of users.
    pub auth: AuthConfig,
    /// Authorization of users by their roles.
    pub authorization: AuthorizationConfig,
    /// Location and presentation of skills.
    pub skills: SkillsConfig,
    /// Overrides of the extensions file.
    pub extensions: OpenKeys,
    /// Settings of test setups.
    pub testing: TestingConfig,
    /// Sections without a typed struct, as they are written in the file.
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
            flows: FlowsConfig::default(),
            guardrails: GuardrailsConfig::default(),
            runs: RunsConfig::default(),
            limits: LimitsConfig::default(),
            quotas: QuotasConfig::default(),
            fair_permits: FairPermitsConfig::default(),
            retention: RetentionConfig::default(),
            run_ownership: RunOwnershipConfig::default(),
            run_events: RunEventsConfig::default(),
            database: DatabaseConfig::default(),
            checkpointer: CheckpointerConfig::default(),
            store: StoreConfig::default(),
            stream_bridge: StreamBridgeConfig::default(),
            webhooks: WebhooksConfig::default(),
            auth: AuthConfig::default(),
            authorization: AuthorizationConfig::default(),
            skills: SkillsConfig::default(),
            extensions: OpenKeys::default(),
            testing: TestingConfig::default(),
            other: OpenKeys::default(),
        }
    }
}

impl AppConfig {
    /// Returns the model entry called `name`, or the first one if no name is given.
    pub fn model(&self, name: Option<&str>) -> Option<&ModelConfig> {
        match name {
            None => self.models.first(),
            Some(name) => self.models.iter().find(|model| model.name == name),
        }
    }

    /// Returns a section that has no typed struct.
    pub fn untyped(&self, section: &str) -> Option<&Value> {
        self.other.get(section)
    }

    /// Returns all values that are out of bounds; empty for a valid configuration.
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
        check.under("flows", |check| self.flows.check(check));
        check.under("guardrails", |check| self.guardrails.check(check));
        check.under("authorization", |check| self.authorization.check(check));
        check.under("runs", |check| self.runs.check(check));
        check.under("limits", |check| self.limits.check(check));
        check.under("quotas", |check| self.quotas.check(check));
        check.under("fair_permits", |check| self.fair_permits.check(check));
        check.under("retention", |check| {
            self.retention.check(self.run_events.backend, check)
        });
        check.under("run_ownership", |check| self.run_ownership.check(check));
        check.under("database", |check| self.database.check(check));
        check.under("checkpointer", |check| self.checkpointer.check(check));
        check.under("store", |check| self.store.check(check));
        check.under("stream_bridge", |check| self.stream_bridge.check(check));
        check.under("auth", |check| self.auth.check(check));
        check.into_violations()
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
