//! State shared by all handlers.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::FromRef;
use chrono::TimeDelta;
use deerflow_accounts::oidc::ProviderClient;
use deerflow_accounts::{AccountDeletion, SignIn};
use deerflow_domain::accounts::AccountStores;
use deerflow_domain::api_keys::ApiKeyStore;
use deerflow_domain::assistants::AssistantStore;
use deerflow_domain::branches::BranchStore;
use deerflow_domain::channels::{ChannelRuntime, ConnectionStore, InMemoryChannels, NoChannels};
use deerflow_domain::crons::CronStore;
use deerflow_domain::feedback::FeedbackStore;
use deerflow_domain::items::ItemService;
use deerflow_domain::scheduled_tasks::TaskStore;
use deerflow_domain::threads::ThreadStore;
use deerflow_domain::usage::UsageStore;
use harness::agents::custom::CustomAgents;
use harness::clock::Clock;
use harness::ids::{IdSource, RunId};
use harness::mcp::settings::McpPort;
use harness::models::UsageRecorder;
use harness::runtime::agent::AgentResolver;
use harness::runtime::checkpoint::Checkpointer;
use harness::runtime::runs::store::{RequestStore, RunEventStore, WebhookOutbox};
use harness::runtime::runs::{NodeLifecycle, RunError, RunQueries, RunRecord, RunsFacade};
use harness::runtime::tasks::Tasks;
use harness::sandbox::FileQuota;
use harness::skills::Skills;
use harness::user_memory::UserMemories;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::flows::FlowCatalog;
use crate::guard::auth::{AccountPresence, Authenticator};
use crate::guard::origin_policy::OriginPolicy;
use crate::guard::trusted_proxies::TrustedProxies;
use crate::observability::health::Health;
use crate::observability::metrics::RunGauges;
use crate::ports::{
    AccessControl, AssistView, CatalogView, MetricsView, SignInRules, ThreadFilesPort,
};
use crate::thread_log::ThreadLogs;
use crate::webhooks::WebhookPolicy;

/// Ports and settings of the gateway. A handler takes the whole state, or the part that it needs.
#[derive(Debug)]
pub struct GatewayState {
    /// Operations on runs.
    pub runs: Arc<RunsFacade>,
    /// Data that runs produce, and its delivery.
    pub run_services: RunServices,
    /// Event logs of threads for readers of the streaming protocol.
    pub thread_logs: Arc<ThreadLogs>,
    /// Threads with their states and files.
    pub thread_services: ThreadServices,
    /// Agents and their capabilities.
    pub agent_services: AgentServices,
    /// Bots on chat platforms.
    pub channels: ChannelServices,
    /// Items of the LangGraph store.
    pub items: Arc<ItemService>,
    /// Scheduled runs.
    pub schedules: ScheduleServices,
    /// The configuration as clients may see it.
    pub info: Arc<dyn CatalogView>,
    /// Decisions about who may send requests.
    pub security: SecurityState,
    /// State of the server for its operators.
    pub observability: Observability,
    /// Clock, ids and tasks of this process.
    pub process: ProcessServices,
}

/// Scheduled runs.
#[derive(Debug, Clone)]
pub struct ScheduleServices {
    /// Run requests that are repeated on a schedule.
    pub crons: Arc<dyn CronStore>,
    /// Prompts that run once or repeatedly.
    pub tasks: Arc<dyn TaskStore>,
    /// Minimum delay of a task that runs once.
    pub min_once_delay: TimeDelta,
}

/// Data that runs produce, and its delivery.
#[derive(Debug, Clone)]
pub struct RunServices {
    /// Idempotency keys and the resources that they created.
    pub requests: Arc<dyn RequestStore>,
    /// Journal of run events.
    pub events: Arc<dyn RunEventStore>,
    /// Token totals of users' runs and of auxiliary model calls.
    pub usage: Arc<dyn UsageStore>,
    /// Undelivered webhook calls.
    pub outbox: Arc<dyn WebhookOutbox>,
    /// Addresses that webhooks may call.
    pub webhooks: WebhookPolicy,
}

/// Threads with their states and files.
#[derive(Debug, Clone)]
pub struct ThreadServices {
    /// Rows of threads.
    pub threads: Arc<dyn ThreadStore>,
    /// Branches of threads.
    pub branches: Arc<dyn BranchStore>,
    /// Checkpoints of threads.
    pub checkpoints: Arc<dyn Checkpointer>,
    /// Feedback of users on runs.
    pub feedback: Arc<dyn FeedbackStore>,
    /// Files of threads.
    pub files: Arc<dyn ThreadFilesPort>,
    /// Quota of the files of each user.
    pub file_quota: FileQuota,
}

/// Agents and their capabilities.
#[derive(Debug, Clone)]
pub struct AgentServices {
    /// Agents by name.
    pub assistants: Arc<dyn AgentResolver>,
    /// Assistants created by users.
    pub assistant_store: Arc<dyn AssistantStore>,
    /// Agents created by users.
    pub custom_agents: Arc<dyn CustomAgents>,
    /// Flows of users and of the system.
    pub flows: Arc<FlowCatalog>,
    /// Skills of agents.
    pub skills: Skills,
    /// Memory of users.
    pub user_memories: UserMemories,
    /// MCP servers.
    pub mcp: Arc<dyn McpPort>,
    /// Auxiliary model features.
    pub assist: Arc<dyn AssistView>,
}

/// Bots on chat platforms, and the accounts that users connect.
#[derive(Debug, Clone)]
pub struct ChannelServices {
    /// Control of the channel service.
    pub runtime: Arc<dyn ChannelRuntime>,
    /// Connected accounts.
    pub connections: Arc<dyn ConnectionStore>,
}

/// Services of a process without channels.
impl Default for ChannelServices {
    fn default() -> Self {
        Self {
            runtime: Arc::new(NoChannels),
            connections: InMemoryChannels::stores().connections,
        }
    }
}

/// Decisions about who may send requests.
#[derive(Debug, Clone)]
pub struct SecurityState {
    /// Allowed hosts and origins.
    pub origin_policy: OriginPolicy,
    /// Authentication of requests.
    pub authenticator: Authenticator,
    /// Proxies whose forwarded headers are believed.
    pub trusted_proxies: TrustedProxies,
    /// Rules of roles.
    pub access: Arc<dyn AccessControl>,
    /// `true` if cookies may outlive the browser over http.
    pub insecure_persistence: bool,
    /// Accounts, sessions and keys of people.
    pub sign_in: Arc<SignInServices>,
}

/// Accounts, sessions and keys of people.
#[derive(Debug)]
pub struct SignInServices {
    /// Operations of sign-in.
    pub service: SignIn,
    /// Client of identity providers.
    pub providers: ProviderClient,
    /// Deletion of accounts with their data.
    pub deletion: AccountDeletion,
    /// Stores.
    pub stores: AccountStores,
    /// API keys.
    pub keys: Arc<dyn ApiKeyStore>,
    /// Presence of accounts.
    pub presence: Arc<AccountPresence>,
    /// Rules of the configuration.
    pub rules: Arc<dyn SignInRules>,
    /// Start of the time in which other machines may create the first administrator.
    pub started_at: Instant,
}

/// State of the server for its operators.
#[derive(Debug, Clone)]
pub struct Observability {
    /// Readiness checks.
    pub health: Arc<Health>,
    /// Refresh state of the run gauges.
    pub run_gauges: Arc<RunGauges>,
    /// Metrics of this process.
    pub metrics: Arc<dyn MetricsView>,
    /// `true` if the OpenAPI document is served.
    pub docs_enabled: bool,
    /// `true` if responses and log lines have trace ids.
    pub trace_ids: bool,
}

/// Clock, ids and tasks of this process.
#[derive(Debug, Clone)]
pub struct ProcessServices {
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Source of new ids.
    pub ids: Arc<dyn IdSource>,
    /// Spawner of work that continues after its request.
    pub tasks: Tasks,
    /// Start time of the server: creation time of the built-in assistants.
    pub started_at: chrono::DateTime<chrono::Utc>,
    /// Cancelled when the server stops; open streams abort.
    pub shutdown: CancellationToken,
}

/// Lets handlers take the part of the state in the field `$field`.
macro_rules! part {
    ($($part:ty: $field:ident),+ $(,)?) => {
        $(impl FromRef<Arc<GatewayState>> for $part {
            fn from_ref(state: &Arc<GatewayState>) -> Self {
                state.$field.clone()
            }
        })+
    };
}

part!(
    RunServices: run_services,
    ThreadServices: thread_services,
    AgentServices: agent_services,
    ChannelServices: channels,
    SecurityState: security,
    Observability: observability,
    ProcessServices: process,
);

impl GatewayState {
    /// Queries over unfinished runs.
    pub(crate) fn run_queries(&self) -> RunQueries {
        RunQueries::new(self.runs.runtime())
    }

    /// Returns why those of these runs of one user that wait do so.
    pub(crate) async fn queue_reasons(
        &self,
        runs: &[RunRecord],
    ) -> Result<HashMap<RunId, &'static str>, RunError> {
        self.run_queries().queue_reasons(runs).await
    }

    /// Lease and limits of this process.
    pub(crate) fn node(&self) -> NodeLifecycle {
        NodeLifecycle::new(self.runs.runtime())
    }

    /// Recorder of the usage of auxiliary model calls.
    pub(crate) fn usage_recorder(&self) -> UsageRecorder {
        UsageRecorder {
            events: self.run_services.events.clone(),
            ledger: self.run_services.usage.clone(),
            clock: self.process.clock.clone(),
            ids: self.process.ids.clone(),
        }
    }
}
