//! What every handler can reach.

use std::sync::Arc;

use deerflow_domain::assistants::AssistantStore;
use deerflow_domain::crons::CronStore;
use deerflow_domain::feedback::FeedbackStore;
use deerflow_domain::items::Items;
use deerflow_domain::threads::ThreadStore;
use deerflow_domain::usage::UsageStore;
use harness::agents::custom::CustomAgents;
use harness::clock::Clock;
use harness::ids::IdSource;
use harness::mcp::settings::McpPort;
use harness::memory::Memories;
use harness::models::Till;
use harness::runtime::agent::AgentResolver;
use harness::runtime::checkpoint::Checkpointer;
use harness::runtime::runs::RunsFacade;
use harness::runtime::runs::store::{RequestStore, RunEventStore, WebhookOutbox};
use harness::runtime::tasks::Tasks;
use harness::skills::Skills;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::health::Health;
use crate::metrics::Counted;
use crate::ports::{AidsView, CatalogView, MetricsView, ThreadFilesPort};
use crate::visitors::Visitors;
use crate::webhooks::WebhookPolicy;

/// The ports behind the wire.
#[derive(Debug)]
pub struct GatewayState {
    /// The verbs of runs.
    pub runs: Arc<RunsFacade>,
    /// Threads as they are listed.
    pub threads: Arc<dyn ThreadStore>,
    /// What users think of answers.
    pub feedback: Arc<dyn FeedbackStore>,
    /// What users' runs add up to, and what they pay for besides.
    pub usage: Arc<dyn UsageStore>,
    /// What is remembered about users.
    pub memories: Memories,
    /// What agents know how to do.
    pub skills: Skills,
    /// Agents that users made.
    pub custom_agents: Arc<dyn CustomAgents>,
    /// Items of the platform's store.
    pub items: Arc<Items>,
    /// Runs by the clock.
    pub crons: Arc<dyn CronStore>,
    /// Saved states.
    pub checkpoints: Arc<dyn Checkpointer>,
    /// What requests made that may come again.
    pub requests: Arc<dyn RequestStore>,
    /// The journal.
    pub events: Arc<dyn RunEventStore>,
    /// Assistants that users made.
    pub assistant_store: Arc<dyn AssistantStore>,
    /// Agents by name.
    pub assistants: Arc<dyn AgentResolver>,
    /// The configuration as clients may see it.
    pub info: Arc<dyn CatalogView>,
    /// What models do beside the conversation.
    pub aids: Arc<dyn AidsView>,
    /// The MCP servers.
    pub mcp: Arc<dyn McpPort>,
    /// Files of threads.
    pub files: Arc<dyn ThreadFilesPort>,
    /// Calls that tell of runs' ends and were not taken yet.
    pub outbox: Arc<dyn WebhookOutbox>,
    /// Where runs may tell of their end.
    pub webhooks: WebhookPolicy,
    /// How the parts do that runs need.
    pub health: Health,
    /// What was last counted for the figures.
    pub counted: Counted,
    /// The figures of this process.
    pub metrics: Arc<dyn MetricsView>,
    /// Who may come in.
    pub visitors: Visitors,
    /// For whom requests act.
    pub access: Access,
    /// Whether the API describes itself.
    pub docs_enabled: bool,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn IdSource>,
    /// Where work goes on that outlives its request.
    pub tasks: Tasks,
    /// When the server began: the age of the built-in assistants.
    pub started_at: chrono::DateTime<chrono::Utc>,
    /// Cancelled when the server stops; open streams abort on it.
    pub shutdown: CancellationToken,
}

impl GatewayState {
    /// Where is booked what models are asked beside runs.
    pub(crate) fn till(&self) -> Till {
        Till {
            events: self.events.clone(),
            ledger: self.usage.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
        }
    }
}
