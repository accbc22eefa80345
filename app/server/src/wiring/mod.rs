//! Composition root: the only place that names concrete types of several crates at once.

mod agents;
mod assist;
mod bridge;
mod catalog;
pub mod commands;
mod containers;
mod custom_agents;
mod documents;
mod expiry;
mod guardrails;
mod items;
pub mod keys;
mod limits;
mod maintenance;
mod mcp;
mod memories;
pub mod operations;
pub mod probes;
mod skills;
mod stores;
mod thread_files;
mod web;

use std::sync::Arc;

use anyhow::Context;
use deerflow_domain::crons::Scheduler;
use deerflow_domain::maintenance::Maintenance;
use deerflow_gateway::GatewayState;
use deerflow_gateway::cron_runs::CronRuns;
use deerflow_gateway::guard::auth::Authenticator;
use deerflow_gateway::guard::origin_policy::{Hosts, OriginPolicy};
use deerflow_gateway::health::Health;
use deerflow_gateway::queries::thread_index::GatewayThreadIndex;
use deerflow_gateway::webhooks::{SenderOptions, SigningKey, WebhookPolicy, WebhookSender};
use harness::acp::AcpContext;
use harness::client::{Client, Installation};
use harness::ids::{IdSource, SystemIds};
use harness::models::UsageRecorder;
use harness::runtime::runs::{RunLimits, RunsFacade, RuntimePorts};
use harness::runtime::stream_bridge::StreamBridge;
use harness::runtime::tasks::{TaskKind, Tasks};
use harness::sandbox::{FileHome, FileLimits, Mounts};
use harness::user_memory::UserMemories;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigHandle, Settings};
use crate::metrics::{Metrics, RunMeter};
use custom_agents::FileCustomAgents;
use stores::Stores;
use thread_files::ThreadResources;

/// Share of a process in the work that is pending in the stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Server: takes part in all work.
    Server,
    /// Guest: executes only runs of its own client. Queued runs, crons, webhooks and maintenance
    /// are left to servers.
    Guest,
}

/// Runtime, and the gateway state on top of it.
#[derive(Debug)]
pub struct App {
    /// Operations on runs.
    pub runs: Arc<RunsFacade>,
    /// In-process client with access to the installation.
    pub client: Client,
    /// State of the HTTP handlers.
    pub gateway: Arc<GatewayState>,
    /// Stream bridge to viewers.
    pub bridge: Arc<dyn StreamBridge>,
    /// Tasks of runs and of runtime services.
    pub tasks: Tasks,
    /// Tasks of memory updates, which have their own shutdown timeout.
    pub memory_tasks: Tasks,
    /// Tasks of the stores, which end last.
    pub store_tasks: Tasks,
}

impl App {
    /// Opens the stores, recovers orphaned runs and builds the application. `tasks` must be empty;
    /// it receives the tasks of runs and services.
    pub async fn build(
        settings: &Settings,
        config: &ConfigHandle,
        role: Role,
        tasks: Tasks,
        shutdown: CancellationToken,
    ) -> anyhow::Result<Self> {
        let now = config.current();
        anyhow::ensure!(
            !now.testing.conformance_agent || settings.is_loopback(),
            "refusing to start: testing.conformance_agent offers an agent for tests, and GATEWAY_HOST {} is not loopback",
            settings.host
        );
        let ids = Arc::new(SystemIds::default());
        let store_tasks = tasks.sibling();
        let stores = Stores::open(&now, settings, ids.node_id().as_str(), &store_tasks).await?;
        let clock = stores.clock.clone();
        let (bridge, bell) = bridge::open(&now, settings, stores.streams.clone(), &tasks)?;
        bridge.start().await?;
        let extensions = skills::extensions(config.environment())?;
        let skills = skills::open(
            &now,
            settings,
            config.environment(),
            extensions.clone(),
            clock.clone(),
        )?;
        let mounts = commands::mounted(config, settings);
        let files = FileHome::new(settings.home.as_path(), FileLimits::default())
            .with_skill_mounts(Arc::new(skills.clone()));
        let files = files.with_mounts(Mounts::new(mounts.clone()));
        let memories = UserMemories::new(stores.memories, clock.clone(), ids.clone());
        let commands = commands::open(config, settings, mounts, &tasks).await;
        let custom = Arc::new(FileCustomAgents::new(files.home()));
        let mcp = mcp::open(config, extensions, &files, &tasks)?;
        let ports = agents::AgentPorts {
            files: files.clone(),
            skills: skills.clone(),
            memories: memories.clone(),
            custom: custom.clone(),
            commands,
            web: web::factory(config.environment()),
            live_tools: mcp.tools(),
            acp: Arc::new(AcpContext::new(
                files.clone(),
                mcp::program_variables(config.environment()),
                Some(mcp.config()),
            )),
            clock: clock.clone(),
            testing: settings.is_loopback(),
        };
        let agents = agents::resolver(config.clone(), ports);
        let runs = Arc::new(RunsFacade::new(
            RuntimePorts {
                bridge: bridge.clone(),
                checkpointer: stores.checkpoints.clone(),
                create: stores.runs.clone(),
                commit: stores.commits.clone(),
                query: stores.runs.clone(),
                delete: stores.deletes.clone(),
                ledger: stores.runs.clone(),
                nodes: stores.nodes.clone(),
                bell,
                events: stores.events.clone(),
                agents: agents.clone(),
                observer: Arc::new(RunMeter::default()),
                clock: clock.clone(),
                ids: ids.clone(),
                tasks: tasks.clone(),
            },
            RunLimits::from(&*now),
        ));
        let policy = WebhookPolicy {
            allow_private: now.webhooks.allow_private,
        };
        let key = now
            .webhooks
            .secret
            .as_ref()
            .map(SigningKey::new)
            .transpose()
            .context("`webhooks.secret` cannot be used")?;
        let options = SenderOptions {
            policy,
            key,
            ..SenderOptions::default()
        };
        let recovered = match role {
            Role::Server => {
                let maintenance = Maintenance {
                    store: stores.maintenance,
                    requests: stores.requests.clone(),
                    outbox: stores.webhooks.clone(),
                    checkpoints: stores.checkpoints.clone(),
                    clock: clock.clone(),
                    holder: ids.node_id().to_string(),
                };
                WebhookSender::new(stores.webhooks.clone(), clock.clone(), options)?.start(&tasks);
                maintenance::spawn_sweep_loop(config, maintenance, &tasks);
                runs.recover().await?
            }
            Role::Guest => runs.join().await?,
        };
        if recovered > 0 {
            tracing::warn!(runs = recovered, "took over orphaned runs");
        }
        limits::apply_config_changes(config, runs.clone(), &tasks);
        let items = items::open(
            &now.store,
            &now.llm_call,
            config.environment(),
            stores.items,
            clock.clone(),
        )?;
        tasks.spawn(
            TaskKind::Service,
            "store sweeper",
            items.clone().sweep_loop(tasks.token().clone()),
        );
        let usage_recorder = UsageRecorder {
            events: stores.events.clone(),
            ledger: stores.usage.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
        };
        let memory_tasks = Tasks::new();
        memories::spawn_worker(
            memories.clone(),
            stores.checkpoints.clone(),
            agents.clone(),
            usage_recorder,
            &memory_tasks,
            tasks.token().clone(),
        );
        let reader = documents::reader();
        let metrics = Metrics::start();
        tasks.spawn(
            TaskKind::Service,
            "metrics",
            metrics.clone().upkeep_loop(tasks.token().clone()),
        );
        let gateway = Arc::new(GatewayState {
            health: Health::new(stores.probes),
            run_gauges: Default::default(),
            metrics: Arc::new(metrics),
            runs: runs.clone(),
            threads: stores.threads,
            feedback: stores.feedback,
            usage: stores.usage,
            assistant_store: stores.assistants,
            user_memories: memories.clone(),
            skills: skills.clone(),
            custom_agents: custom,
            items,
            crons: stores.crons.clone(),
            authenticator: Authenticator::new(settings.key_rule(), stores.keys, clock.clone()),
            docs_enabled: settings.docs_enabled,
            checkpoints: stores.checkpoints,
            events: stores.events,
            requests: stores.requests,
            assistants: agents.clone(),
            assist: agents,
            info: Arc::new(catalog::ConfigCatalog(config.clone(), reader.clone())),
            files: Arc::new(ThreadResources {
                files: files.clone(),
                mcp: mcp.clone(),
            }),
            mcp: mcp.clone(),
            outbox: stores.webhooks,
            webhooks: policy,
            origin_policy: origin_policy(settings),
            started_at: clock.now(),
            clock: clock.clone(),
            ids,
            tasks: tasks.clone(),
            shutdown,
        });
        let installation = Installation {
            config: Some(Arc::new(config.clone())),
            files: Some(files),
            documents: reader,
            skills: Some(skills),
            memories: Some(memories),
            threads: Some(Arc::new(GatewayThreadIndex(gateway.clone()))),
            mcp: Some(mcp),
        };
        let client = Client::new(runs.clone()).installation(installation);
        if role == Role::Server {
            expiry::spawn_sweep_loop(config, gateway.clone(), &tasks);
            let scheduler = Scheduler::new(
                stores.crons,
                Arc::new(CronRuns::new(gateway.clone())),
                clock,
            );
            tasks.spawn(
                TaskKind::Service,
                "cron scheduler",
                scheduler.run(tasks.token().clone()),
            );
        }
        Ok(Self {
            runs,
            client,
            gateway,
            bridge,
            tasks,
            memory_tasks,
            store_tasks,
        })
    }
}

/// Beyond loopback, the host names of the server are unknown, and a proxy must check them.
fn origin_policy(settings: &Settings) -> OriginPolicy {
    let hosts = if settings.is_loopback() {
        Hosts::LoopbackAnd(settings.allowed_hosts.clone())
    } else {
        Hosts::Any
    };
    OriginPolicy::new(hosts, settings.cors_origins.clone())
}
