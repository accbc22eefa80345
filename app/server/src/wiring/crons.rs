//! Starts the scheduler of crons.

use std::sync::Arc;

use deerflow_domain::crons::Scheduler;
use deerflow_gateway::GatewayState;
use deerflow_gateway::background::CronRuns;
use harness::runtime::tasks::TaskKind;

use super::context::Context;
use super::stores::Stores;

pub(super) fn start(context: &Context<'_>, stores: &Stores, gateway: Arc<GatewayState>) {
    let scheduler = Scheduler::new(
        stores.crons.clone(),
        Arc::new(CronRuns::new(gateway)),
        stores.clock.clone(),
    );
    context.tasks.spawn(
        TaskKind::Service,
        "cron scheduler",
        scheduler.run(context.tasks.token().clone()),
    );
}
