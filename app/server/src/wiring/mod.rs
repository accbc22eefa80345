//! The composition root: the only place that names concrete types of several crates at once.

mod agents;
mod aids;
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
mod mcp;
mod memories;
pub mod operations;
pub mod probes;
mod skills;
mod stores;
mod thread_files;
mod upkeep;
mod web;

use std::sync::Arc;

use anyhow::Context;
use deerflow_domain::crons::Scheduler;
use deerflow_domain::upkeep::Upkeep;
use deerflow_gateway::GatewayState;
use deerflow_gateway::access::Access;
use deerflow_gateway::cron_runs::CronRuns;
use deerflow_gateway::health::Health;
use deerflow_gateway::thread_index::GatewayThreadIndex;
use deerflow_gateway::visitors::{Hosts, Visitors};
use deerflow_gateway::webhooks::{SenderOptions, SigningKey, WebhookPolicy, WebhookSender};
use harness::acp::AcpSurroundings;
use harness::client::{Client, Installation};
use harness::ids::{IdSource, SystemIds};
use harness::memory::Memories;
use harness::models::Till;
use harness::runtime::runs::{RunLimits, RunsFacade, RuntimeParts};
use harness::runtime::stream_bridge::StreamBridge;
use harness::runtime::tasks::{TaskKind, Tasks};
use harness::sandbox::{FileHome, FileLimits, Mounts};
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigHandle, Settings};
use crate::metrics::{Metrics, RunMeter};
use custom_agents::FileCustomAgents;
use stores::Stores;
use thread_files::FilesAndServers;

/// What a process does of all that is due in its stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// All of it: it is a server.
    Server,
    /// Only what its own user asks for. Runs that wait, crons, webhooks and what is to be forgotten are for servers.
    Guest,
}

/// A runtime and the state of a gateway over it.
#[derive(Debug)]
pub struct App {
    /// The verbs of runs.
    pub runs: Arc<RunsFacade>,
    /// The same verbs, and what else the installation has, for this process.
    pub client: Client,
    /// What handlers reach.
    pub gateway: Arc<GatewayState>,
    /// The road to viewers.
    pub bridge: Arc<dyn StreamBridge>,
    /// Tasks of runs and of the runtime's services.
    pub tasks: Tasks,
    /// What is learned from threads: it has its own time at the end.
    pub lessons: Tasks,
    /// Tasks of the stores: they end last.
    pub store_tasks: Tasks,
}

impl App {
    /// Opens the stores, recovers what a former process left, and puts everything together. `tasks` is empty, and takes the tasks
    /// of runs and services.
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
            .with_shelves(Arc::new(skills.clone()));
        let files = files.with_mounts(Mounts::new(mounts.clone()));
        let memories = Memories::new(stores.memories, clock.clone(), ids.clone());
        let commands = commands::open(config, settings, mounts, &tasks).await;
        let custom = Arc::new(FileCustomAgents::new(files.home()));
        let mcp = mcp::open(config, extensions, &files, &tasks)?;
        let parts = agents::Parts {
            files: files.clone(),
            skills: skills.clone(),
            memories: memories.clone(),
            custom: custom.clone(),
            commands,
            web: web::kit(config.environment()),
            live_tools: mcp.tools(),
            acp: Arc::new(AcpSurroundings::new(
                files.clone(),
                mcp::program_variables(config.environment()),
                Some(mcp.config()),
            )),
            clock: clock.clone(),
            testing: settings.is_loopback(),
        };
        let agents = agents::resolver(config.clone(), parts);
        let runs = Arc::new(RunsFacade::new(
            RuntimeParts {
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
                let upkeep = Upkeep {
                    store: stores.upkeep,
                    requests: stores.requests.clone(),
                    outbox: stores.webhooks.clone(),
                    checkpoints: stores.checkpoints.clone(),
                    clock: clock.clone(),
                    holder: ids.node_id().to_string(),
                };
                WebhookSender::new(stores.webhooks.clone(), clock.clone(), options)?.start(&tasks);
                upkeep::follow(config, upkeep, &tasks);
                runs.recover().await?
            }
            Role::Guest => runs.join().await?,
        };
        if recovered > 0 {
            tracing::warn!(
                runs = recovered,
                "took over runs that a former process left unfinished"
            );
        }
        limits::follow(config, runs.clone(), &tasks);
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
            items.clone().keep_swept(tasks.token().clone()),
        );
        let till = Till {
            events: stores.events.clone(),
            ledger: stores.usage.clone(),
            clock: clock.clone(),
            ids: ids.clone(),
        };
        let lessons = Tasks::new();
        memories::follow(
            memories.clone(),
            stores.checkpoints.clone(),
            agents.clone(),
            till,
            &lessons,
            tasks.token().clone(),
        );
        let reader = documents::reader();
        let metrics = Metrics::start();
        tasks.spawn(
            TaskKind::Service,
            "metrics",
            metrics.clone().keep_summed(tasks.token().clone()),
        );
        let gateway = Arc::new(GatewayState {
            health: Health::new(stores.probes),
            counted: Default::default(),
            metrics: Arc::new(metrics),
            runs: runs.clone(),
            threads: stores.threads,
            feedback: stores.feedback,
            usage: stores.usage,
            assistant_store: stores.assistants,
            memories: memories.clone(),
            skills: skills.clone(),
            custom_agents: custom,
            items,
            crons: stores.crons.clone(),
            access: Access::new(settings.key_rule(), stores.keys, clock.clone()),
            docs_enabled: settings.docs_enabled,
            checkpoints: stores.checkpoints,
            events: stores.events,
            requests: stores.requests,
            assistants: agents.clone(),
            aids: agents,
            info: Arc::new(catalog::ConfigCatalog(config.clone(), reader.clone())),
            files: Arc::new(FilesAndServers {
                files: files.clone(),
                mcp: mcp.clone(),
            }),
            mcp: mcp.clone(),
            outbox: stores.webhooks,
            webhooks: policy,
            visitors: visitors(settings),
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
            expiry::follow(config, gateway.clone(), &tasks);
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
            lessons,
            store_tasks,
        })
    }
}

/// Beyond loopback no name is known to be the server's own, and something in front of it lets people in.
fn visitors(settings: &Settings) -> Visitors {
    let hosts = if settings.is_loopback() {
        Hosts::LoopbackAnd(settings.allowed_hosts.clone())
    } else {
        Hosts::Any
    };
    Visitors::new(hosts, settings.cors_origins.clone())
}
