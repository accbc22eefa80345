//! A whole in-memory gateway: real runtime, real bridge, and an agent whose behaviour the user's
//! message selects.

mod agent;
mod bodies;
mod flows;
mod ports;
mod response;
mod security;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use chrono::TimeDelta;
use deerflow_domain::api_keys::InMemoryApiKeyStore;
use deerflow_domain::crons::InMemoryCronStore;
use deerflow_domain::in_memory::InMemoryAssistantStore;
use deerflow_domain::items::{InMemoryItemStore, ItemService, TtlPolicy};
use deerflow_domain::scheduled_tasks::InMemoryTaskStore;
use deerflow_domain::thread_log::InMemoryThreadLog;
use deerflow_gateway::guard::auth::KeyRule;
use deerflow_gateway::thread_log::{LogLimits, LogPorts, ThreadLogs};
use deerflow_gateway::webhooks::WebhookPolicy;
use deerflow_gateway::{
    AgentServices, ChannelServices, GatewayState, Observability, ProcessServices, RunServices,
    ScheduleServices, ThreadServices,
};
use harness::agents::custom::{
    AgentName, CustomAgent, CustomAgentError, InMemoryCustomAgents, change,
};
use harness::clock::{Clock, ManualClock, SystemClock};
use harness::config::{ExtensionsFile, OpenKeys};
use harness::documents::DocumentReader;
use harness::ids::{IdSource, SystemIds};
use harness::middlewares::SnapshotFileChanges;
use harness::runtime::actor_context::DEFAULT_USER_ID;
use harness::runtime::agent::AgentResolver;
use harness::runtime::in_memory::{
    InMemoryNodeNotifier, InMemoryOptions, InMemoryStores, InMemoryStreamBridge,
};
use harness::runtime::runs::{NodeLifecycle, NullObserver, RunLimits, RunsFacade, RuntimePorts};
use harness::runtime::tasks::Tasks;
use harness::sandbox::FileQuota;
use harness::skills::{SkillFolders, Skills};
use harness::user_memory::{InMemoryUserMemoryStore, UserMemories};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub(crate) use self::agent::OneAgent;
pub(crate) use self::bodies::{saying, saying_with};
pub(crate) use self::flows::FLOW;
pub(crate) use self::ports::config;
use self::ports::{Catalog, Files, NoMetrics, ScriptedAssist};
pub(crate) use self::response::HttpResponse;
pub(crate) use self::security::Accounts;
use crate::thread_rows::Threads;

/// The gateway under test.
pub(crate) struct Gateway {
    pub(crate) router: axum::Router,
    pub(crate) runs: Arc<RunsFacade>,
    pub(crate) stores: InMemoryStores,
    pub(crate) files: Arc<Files>,
    pub(crate) state: Arc<GatewayState>,
    pub(crate) keys: Arc<InMemoryApiKeyStore>,
    pub(crate) accounts: Accounts,
    pub(crate) crons: Arc<InMemoryCronStore>,
    pub(crate) shutdown: CancellationToken,
}

impl Gateway {
    pub(crate) fn new() -> Self {
        Self::with_docs(true)
    }

    /// Lease and limits of the gateway's process.
    pub(crate) fn node(&self) -> NodeLifecycle {
        NodeLifecycle::new(self.runs.runtime())
    }

    /// Returns a gateway with or without OpenAPI documents.
    pub(crate) fn with_docs(docs_enabled: bool) -> Self {
        Self::built(
            docs_enabled,
            Catalog::default(),
            Arc::new(SystemClock),
            Arc::new(OneAgent::default()),
        )
    }

    /// Returns a gateway with a clock that stays at noon, so that a test stays within one day.
    pub(crate) fn at_noon() -> Self {
        let noon = "2026-01-01T12:00:00Z".parse().expect("a moment");
        Self::built(
            true,
            Catalog::default(),
            Arc::new(ManualClock::starting_at(noon)),
            Arc::new(OneAgent::default()),
        )
    }

    /// Returns a gateway with other assistants.
    pub(crate) fn with_assistants(assistants: Arc<dyn AgentResolver>) -> Self {
        Self::built(true, Catalog::default(), Arc::new(SystemClock), assistants)
    }

    /// Returns a gateway with custom agents.
    pub(crate) fn with_agents() -> Self {
        Self::built(
            true,
            Catalog {
                agents_api: true,
                ..Catalog::default()
            },
            Arc::new(SystemClock),
            Arc::new(OneAgent::default()),
        )
    }

    /// Returns a gateway that converts documents to Markdown.
    pub(crate) fn with_documents(reader: Arc<dyn DocumentReader>) -> Self {
        Self::built(
            true,
            Catalog {
                documents: Some(reader),
                ..Catalog::default()
            },
            Arc::new(SystemClock),
            Arc::new(OneAgent::default()),
        )
    }

    fn built(
        docs_enabled: bool,
        catalog: Catalog,
        clock: Arc<dyn Clock>,
        assistants: Arc<dyn AgentResolver>,
    ) -> Self {
        let stores = InMemoryStores::new();
        let ports = Arc::new(stores.clone());
        let ids: Arc<dyn IdSource> = Arc::new(SystemIds::default());
        let tasks = Tasks::new();
        let files = Arc::new(Files::new());
        let parts = RuntimePorts {
            bridge: Arc::new(
                InMemoryStreamBridge::new(InMemoryOptions::default()).expect("a bridge"),
            ),
            checkpointer: ports.clone(),
            create: ports.clone(),
            commit: ports.clone(),
            query: ports.clone(),
            delete: ports.clone(),
            ledger: ports.clone(),
            nodes: ports.clone(),
            bell: Arc::new(InMemoryNodeNotifier::default()),
            events: ports.clone(),
            file_changes: Arc::new(SnapshotFileChanges::new(&files.home)),
            agents: assistants.clone(),
            observer: Arc::new(NullObserver),
            clock: clock.clone(),
            ids: ids.clone(),
            tasks: tasks.clone(),
        };
        let runs = Arc::new(RunsFacade::new(parts, RunLimits::default()));
        let accounts = Accounts::new(clock.clone());
        let positions = Arc::new(InMemoryThreadLog::default());
        let threads = Arc::new(Threads {
            rows: Arc::default(),
            stores: stores.clone(),
            positions: positions.clone(),
        });
        let (keys, crons) = (
            accounts.keys.clone(),
            Arc::new(InMemoryCronStore::with_requests(ports.clone())),
        );
        let home = files.home.home();
        let extensions = Arc::new(ExtensionsFile::at(home.join("extensions_config.json")));
        let places = SkillFolders {
            shared: home.join("shared"),
            home: home.to_owned(),
        };
        let skills = Skills::new(places, extensions, OpenKeys::default(), clock.clone());
        let shutdown = CancellationToken::new();
        let state = GatewayState {
            runs: runs.clone(),
            items: Arc::new(ItemService::new(
                Arc::new(InMemoryItemStore::default()),
                None,
                TtlPolicy::default(),
                clock.clone(),
            )),
            schedules: ScheduleServices {
                crons: crons.clone(),
                tasks: Arc::new(InMemoryTaskStore::default()),
                min_once_delay: TimeDelta::seconds(60),
            },
            info: Arc::new(catalog),
            run_services: RunServices {
                usage: ports.clone(),
                requests: ports.clone(),
                outbox: ports.clone(),
                events: ports.clone(),
                webhooks: WebhookPolicy::default(),
            },
            thread_logs: ThreadLogs::new(
                LogPorts {
                    runs: runs.clone(),
                    positions,
                    checkpoints: ports.clone(),
                    clock: clock.clone(),
                    tasks: tasks.clone(),
                },
                LogLimits::default(),
            ),
            thread_services: ThreadServices {
                file_quota: FileQuota::new(std::env::temp_dir(), None),
                threads: threads.clone(),
                branches: threads,
                feedback: Arc::new(crate::feedback::FeedbackRows::default()),
                checkpoints: ports.clone(),
                files: files.clone(),
            },
            agent_services: AgentServices {
                assistant_store: Arc::new(InMemoryAssistantStore::default()),
                flows: self::flows::catalog(clock.clone()),
                custom_agents: Arc::new(InMemoryCustomAgents::default()),
                user_memories: UserMemories::new(
                    Arc::new(InMemoryUserMemoryStore::default()),
                    clock.clone(),
                    ids.clone(),
                ),
                skills,
                assistants,
                assist: Arc::new(ScriptedAssist::new()),
                mcp: Arc::new(crate::mcp::Servers::default()),
            },
            channels: ChannelServices::default(),
            security: accounts.security(KeyRule::Optional),
            observability: Observability {
                docs_enabled,
                trace_ids: false,
                health: Default::default(),
                run_gauges: Default::default(),
                metrics: Arc::new(NoMetrics),
            },
            process: ProcessServices {
                started_at: clock.now(),
                clock,
                ids,
                tasks,
                shutdown: shutdown.clone(),
            },
        };
        let state = Arc::new(state);
        Self {
            router: deerflow_gateway::router(state.clone()),
            state,
            runs,
            stores,
            files,
            keys,
            accounts,
            crons,
            shutdown,
        }
    }

    /// Returns this gateway with other channel services.
    pub(crate) fn with_channels(self, channels: ChannelServices) -> Self {
        self.changed(|state| GatewayState { channels, ..state })
    }

    /// Returns this gateway with another requirement of credentials.
    pub(crate) fn with_rule(self, rule: KeyRule) -> Self {
        let security = self.accounts.security(rule);
        self.changed(|state| GatewayState { security, ..state })
    }

    pub(crate) fn changed(self, change: impl FnOnce(GatewayState) -> GatewayState) -> Self {
        drop(self.router);
        let Ok(state) = Arc::try_unwrap(self.state) else {
            panic!("the state is shared")
        };
        let state = Arc::new(change(state));
        Self {
            router: deerflow_gateway::router(state.clone()),
            state,
            ..self
        }
    }

    /// Sends a request and reads the whole response.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<Value>) -> HttpResponse {
        self.raw(
            method,
            path,
            body.map(|body| body.to_string()).unwrap_or_default(),
            &[],
        )
        .await
    }

    pub(crate) async fn raw(
        &self,
        method: &str,
        path: &str,
        body: impl Into<Body>,
        headers: &[(&str, &str)],
    ) -> HttpResponse {
        let response = self.open(method, path, body, headers).await;
        let (parts, body) = response.into_parts();
        let read = axum::body::to_bytes(body, usize::MAX);
        let body = tokio::time::timeout(Duration::from_secs(20), read)
            .await
            .expect("an answer in time")
            .expect("a whole body");
        HttpResponse {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }

    /// Sends a request without reading the response's body.
    pub(crate) async fn open(
        &self,
        method: &str,
        path: &str,
        body: impl Into<Body>,
        headers: &[(&str, &str)],
    ) -> axum::response::Response {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in [("host", "localhost"), ("content-type", "application/json")]
            .iter()
            .filter(|(name, _)| headers.iter().all(|(given, _)| given != name))
            .chain(headers)
        {
            request = request.header(*name, *value);
        }
        self.router
            .clone()
            .oneshot(request.body(body.into()).expect("a request"))
            .await
            .expect("an answer")
    }

    pub(crate) async fn get(&self, path: &str) -> HttpResponse {
        self.send("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> HttpResponse {
        self.send("POST", path, Some(body)).await
    }

    /// Stores an agent that no route would create.
    pub(crate) async fn add_agent(&self, name: &str) {
        let name = AgentName::parse(name).expect("a name");
        let agents = &*self.state.agent_services.custom_agents;
        let agent = change(agents, DEFAULT_USER_ID, &name, |_| {
            Ok::<_, CustomAgentError>(Some(CustomAgent::default()))
        });
        agent.await.expect("stored");
    }

    /// Creates a thread and returns its id.
    pub(crate) async fn thread(&self) -> String {
        self.post("/threads", json!({})).await.json()["thread_id"]
            .as_str()
            .expect("an id")
            .to_owned()
    }

    /// Waits until a run has one of `statuses`.
    pub(crate) async fn wait_for_status(&self, thread: &str, run: &str) -> Value {
        for _ in 0..2_000 {
            let found = self
                .get(&format!("/api/threads/{thread}/runs/{run}"))
                .await
                .json();
            if !matches!(found["status"].as_str(), Some("pending" | "running")) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("run {run} did not end");
    }
}
