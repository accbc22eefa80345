//! Creates the state of the HTTP handlers.

use std::sync::Arc;

use deerflow_channels::ChannelService;
use deerflow_gateway::observability::health::Health;
use deerflow_gateway::webhooks::WebhookPolicy;
use deerflow_gateway::{
    AgentServices, ChannelServices, GatewayState, Observability, ProcessServices, RunServices,
    ThreadServices,
};
use harness::runtime::runs::RunsFacade;

use super::context::Context;
use super::flows::Flows;
use super::resources::Resources;
use super::stores::Stores;
use super::{items, metrics, schedules, security, thread_logs, user_data};
use crate::gateway_ports::catalog::ConfigCatalog;
use crate::gateway_ports::thread_files::ThreadResources;

pub(super) fn open(
    context: &Context<'_>,
    stores: &Stores,
    resources: &Resources,
    runs: &Arc<RunsFacade>,
    flows: Flows,
    webhooks: WebhookPolicy,
    channels: &ChannelService,
) -> anyhow::Result<Arc<GatewayState>> {
    let (settings, clock) = (context.settings, &stores.clock);
    let thread_files = Arc::new(ThreadResources {
        files: resources.files.clone(),
        mcp: resources.mcp.clone(),
    });
    let user_data = user_data::of_server(stores, runs, thread_files.clone(), &resources.files);
    Ok(Arc::new(GatewayState {
        runs: runs.clone(),
        items: items::open(context, stores)?,
        schedules: schedules::open(context, stores)?,
        info: Arc::new(ConfigCatalog(
            context.config.clone(),
            resources.documents.clone(),
        )),
        run_services: RunServices {
            usage: stores.usage.clone(),
            events: stores.of_events.events.clone(),
            requests: stores.requests.clone(),
            outbox: stores.webhooks.clone(),
            webhooks,
        },
        thread_logs: thread_logs::open(context, stores, runs),
        thread_services: ThreadServices {
            threads: stores.of_events.threads.clone(),
            branches: stores.of_events.threads.clone(),
            feedback: stores.feedback.clone(),
            checkpoints: stores.checkpoints.clone(),
            files: thread_files,
            file_quota: resources.file_quota.clone(),
        },
        agent_services: AgentServices {
            assistant_store: stores.assistants.clone(),
            user_memories: resources.memories.clone(),
            skills: resources.skills.clone(),
            flows: flows.catalog,
            custom_agents: resources.custom.clone(),
            assistants: flows.assistants,
            assist: flows.agents,
            mcp: resources.mcp.clone(),
        },
        channels: ChannelServices {
            runtime: Arc::new(channels.clone()),
            connections: stores.channels.connections.clone(),
        },
        security: security::open(context, stores, user_data)?,
        observability: Observability {
            health: Arc::new(Health::new(stores.probes.clone())),
            run_gauges: Default::default(),
            metrics: metrics::start(context),
            docs_enabled: settings.docs_enabled,
            trace_ids: context.now.logging.enhance.enabled,
        },
        process: ProcessServices {
            started_at: clock.now(),
            clock: clock.clone(),
            ids: context.ids.clone(),
            tasks: context.tasks.clone(),
            shutdown: context.shutdown.clone(),
        },
    }))
}
