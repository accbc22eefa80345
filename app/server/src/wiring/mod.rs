//! The composition root: the only place that names concrete types of several crates at once.

mod agents;
mod aids;
mod bridge;
mod catalog;
pub mod commands;
mod custom_agents;
mod expiry;
mod guardrails;
mod items;
pub mod keys;
mod limits;
mod memories;
pub mod operations;
pub mod probes;
mod stores;
mod upkeep;

use std::sync::Arc;

use anyhow::Context;
use deerflow_domain::crons::Scheduler;
use deerflow_domain::upkeep::Upkeep;
use deerflow_gateway::GatewayState;
use deerflow_gateway::access::Access;
use deerflow_gateway::cron_runs::CronRuns;
use deerflow_gateway::visitors::{Hosts, Visitors};
use deerflow_gateway::webhooks::{SenderOptions, SigningKey, WebhookPolicy, WebhookSender};
use harness::clock::{Clock, SystemClock};
use harness::ids::{IdSource, SystemIds};
use harness::memory::Memories;
use harness::runtime::runs::{RunsFacade, RuntimeParts};
use harness::runtime::stream_bridge::StreamBridge;
use harness::runtime::tasks::{TaskKind, Tasks};
use harness::sandbox::{FileHome, FileLimits};
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigHandle, Settings};
use crate::metrics::{Metrics, RunMeter};
use stores::Stores;

/// A runtime and the state of a gateway over it.
#[derive(Debug)]
pub struct App {
    /// The verbs of runs.
    pub runs: Arc<RunsFacade>,
    /// What handlers reach.
    pub gateway: Arc<GatewayState>,
    /// The road to viewers.
    pub bridge: Arc<dyn StreamBridge>,
    /// Tasks of runs and of the runtime's services.
    pub tasks: Tasks,
    /// Tasks of the stores: they end last.
    pub store_tasks: Tasks,
}

impl App {
    /// Opens the stores, recovers what a former process left, and puts everything together.
    pub async fn build(settings: &Settings, config: &ConfigHandle, shutdown: CancellationToken) -> anyhow::Result<Self> {
        let now = config.current();
        anyhow::ensure!(
            !now.testing.conformance_agent || settings.is_loopback(),
            "refusing to start: testing.conformance_agent offers an agent for tests, and GATEWAY_HOST {} is not loopback",
            settings.host
        );
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ids = Arc::new(SystemIds::default());
        let tasks = Tasks::new();
        let store_tasks = Tasks::new();
        let stores = Stores::open(&now, settings, &store_tasks).await?;
        let (bridge, bell) = bridge::open(&now, settings, &tasks)?;
        bridge.start().await?;
        let files = FileHome::new(settings.home.as_path(), FileLimits::default());
        let memories = Memories::new(stores.memories, clock.clone(), ids.clone());
        let commands = commands::open(config, settings).await;
        let agents = agents::resolver(config.clone(), files.clone(), memories.clone(), commands, clock.clone(), settings.is_loopback());
        let runs = Arc::new(RunsFacade::new(
            RuntimeParts {
                bridge: bridge.clone(),
                checkpointer: stores.checkpoints.clone(),
                create: stores.runs.clone(),
                commit: stores.commits.clone(),
                query: stores.runs.clone(),
                delete: stores.runs.clone(),
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
            limits::of(&now),
        ));
        let policy = WebhookPolicy { allow_private: now.webhooks.allow_private };
        let key = now.webhooks.secret.as_ref().map(SigningKey::new).transpose().context("`webhooks.secret` cannot be used")?;
        let options = SenderOptions { policy, key, ..SenderOptions::default() };
        let upkeep = Upkeep {
            store: stores.upkeep,
            requests: stores.requests.clone(),
            outbox: stores.webhooks.clone(),
            clock: clock.clone(),
            holder: ids.node_id().to_string(),
        };
        WebhookSender::new(stores.webhooks, clock.clone(), options)?.start(&tasks);
        upkeep::follow(config, upkeep, &tasks);
        let recovered = runs.recover().await?;
        if recovered > 0 {
            tracing::warn!(runs = recovered, "took over runs that a former process left unfinished");
        }
        limits::follow(config, runs.clone(), &tasks);
        let items = items::open(&now.store, &now.llm_call, config.environment(), stores.items, clock.clone())?;
        tasks.spawn(TaskKind::Service, "store sweeper", items.clone().keep_swept(tasks.token().clone()));
        memories::follow(memories.clone(), stores.checkpoints.clone(), agents.clone(), &tasks);
        let metrics = Metrics::start();
        tasks.spawn(TaskKind::Service, "metrics", metrics.clone().keep_summed(tasks.token().clone()));
        let gateway = Arc::new(GatewayState {
            health: Default::default(),
            counted: Default::default(),
            metrics: Arc::new(metrics),
            runs: runs.clone(),
            threads: stores.threads,
            feedback: stores.feedback,
            assistant_store: stores.assistants,
            memories: memories.clone(),
            items,
            crons: stores.crons.clone(),
            access: Access::new(settings.key_rule(), stores.keys, clock.clone()),
            docs_enabled: settings.docs_enabled,
            checkpoints: stores.checkpoints,
            events: stores.events,
            requests: stores.requests,
            assistants: agents.clone(),
            aids: agents,
            info: Arc::new(catalog::ConfigCatalog(config.clone())),
            files: Arc::new(files),
            webhooks: policy,
            visitors: visitors(settings),
            started_at: clock.now(),
            clock: clock.clone(),
            ids,
            tasks: tasks.clone(),
            shutdown,
        });
        expiry::follow(config, gateway.clone(), &tasks);
        let scheduler = Scheduler::new(stores.crons, Arc::new(CronRuns::new(gateway.clone())), clock);
        tasks.spawn(TaskKind::Service, "cron scheduler", scheduler.run(tasks.token().clone()));
        Ok(Self { runs, gateway, bridge, tasks, store_tasks })
    }
}

/// Beyond loopback no name is known to be the server's own, and something in front of it lets people in.
fn visitors(settings: &Settings) -> Visitors {
    let hosts = if settings.is_loopback() { Hosts::LoopbackAnd(settings.allowed_hosts.clone()) } else { Hosts::Any };
    Visitors::new(hosts, settings.cors_origins.clone())
}
