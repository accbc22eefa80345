//! Creates the state of the HTTP handlers.

use std::sync::Arc;

use deerflow_domain::items::ItemService;
use deerflow_gateway::GatewayState;
use deerflow_gateway::guard::auth::Authenticator;
use deerflow_gateway::guard::origin_policy::{Hosts, OriginPolicy};
use deerflow_gateway::health::Health;
use deerflow_gateway::webhooks::WebhookPolicy;
use harness::runtime::runs::RunsFacade;

use super::context::Context;
use super::metrics;
use super::resources::Resources;
use super::stores::Stores;
use crate::agents::configured::ConfiguredAgents;
use crate::config::Settings;
use crate::gateway_ports::catalog::ConfigCatalog;
use crate::gateway_ports::thread_files::ThreadResources;

pub(super) fn open(
    context: &Context<'_>,
    stores: &Stores,
    resources: &Resources,
    runs: Arc<RunsFacade>,
    agents: Arc<ConfiguredAgents>,
    items: Arc<ItemService>,
    webhooks: WebhookPolicy,
) -> Arc<GatewayState> {
    let (settings, clock) = (context.settings, &stores.clock);
    Arc::new(GatewayState {
        health: Health::new(stores.probes.clone()),
        run_gauges: Default::default(),
        metrics: metrics::start(context),
        runs,
        threads: stores.of_events.threads.clone(),
        feedback: stores.feedback.clone(),
        usage: stores.usage.clone(),
        assistant_store: stores.assistants.clone(),
        user_memories: resources.memories.clone(),
        skills: resources.skills.clone(),
        custom_agents: resources.custom.clone(),
        items,
        crons: stores.crons.clone(),
        authenticator: Authenticator::new(settings.key_rule(), stores.keys.clone(), clock.clone()),
        docs_enabled: settings.docs_enabled,
        checkpoints: stores.checkpoints.clone(),
        events: stores.of_events.events.clone(),
        requests: stores.requests.clone(),
        assistants: agents.clone(),
        assist: agents,
        info: Arc::new(ConfigCatalog(
            context.config.clone(),
            resources.documents.clone(),
        )),
        files: Arc::new(ThreadResources {
            files: resources.files.clone(),
            mcp: resources.mcp.clone(),
        }),
        mcp: resources.mcp.clone(),
        outbox: stores.webhooks.clone(),
        webhooks,
        origin_policy: origin_policy(settings),
        started_at: clock.now(),
        clock: clock.clone(),
        ids: context.ids.clone(),
        tasks: context.tasks.clone(),
        shutdown: context.shutdown.clone(),
    })
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
