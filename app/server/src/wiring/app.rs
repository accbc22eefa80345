//! Builds the application, one area after the other.

use std::sync::Arc;

use deerflow_gateway::GatewayState;
use harness::client::Client;
use harness::runtime::runs::{NodeLifecycle, RunsFacade};
use harness::runtime::stream_bridge::StreamBridge;
use harness::runtime::tasks::Tasks;
use harness::sandbox::FileHome;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::resources::Resources;
use super::role::Role;
use super::stores::Stores;
use super::{
    agents, bridge, channels, client, flows, gateway, maintenance, memories, runs, services,
    webhooks,
};
use crate::config::{ConfigHandle, Settings};
use crate::services::limits::{self, LimitRules, LimitedStores};

/// Runtime, and the gateway state on top of it.
#[derive(Debug)]
pub struct App {
    /// Operations on runs.
    pub runs: Arc<RunsFacade>,
    /// In-process client with access to the installation.
    pub client: Client,
    /// State of the HTTP handlers.
    pub gateway: Arc<GatewayState>,
    /// Files of all threads.
    pub files: FileHome,
    /// Flows with their adapter kinds and loader.
    pub flows: Arc<deerflow_gateway::flows::FlowAssistants>,
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
        let store_tasks = tasks.sibling();
        let context = &Context::new(settings, config, tasks.clone(), shutdown)?;
        let stores = &Stores::open(context, &store_tasks).await?;
        let (bridge, bell) = bridge::open(context, stores.streams.clone())?;
        bridge.start().await?;
        let resources = &Resources::open(context, stores).await?;
        let rules = LimitRules::new(settings);
        let limited = LimitedStores::new(&stores.database, &resources.file_quota);
        limited.set(rules.quotas(&context.now));
        let agents = agents::open(context, stores, resources);
        let flows = flows::open(context, stores, &resources.files, agents.clone()).await?;
        let assistants = flows.assistants.clone();
        let signals = (bridge.clone(), bell);
        let runs = runs::open(context, stores, resources, signals, assistants.clone());
        let webhooks = webhooks::options(&context.now)?;
        let policy = webhooks.policy;
        if role == Role::Server {
            webhooks::start(context, stores, webhooks)?;
            maintenance::start(context, stores);
        }
        let node = NodeLifecycle::new(runs.runtime());
        runs::join(&node, role).await?;
        limits::apply_config_changes(config, rules, node, limited, &tasks);
        let channels = channels::open(context, stores)?;
        let gateway = gateway::open(context, stores, resources, &runs, flows, policy, &channels)?;
        let client = client::open(context, resources, gateway.clone());
        if role == Role::Server {
            services::start(context, stores, &gateway, &channels, &client)?;
        }
        Ok(Self {
            client,
            runs,
            gateway,
            files: resources.files.clone(),
            flows: assistants,
            bridge,
            tasks,
            memory_tasks: memories::start(context, stores, resources, agents),
            store_tasks,
        })
    }
}
