//! Opens and starts the services that create runs on a schedule: crons and scheduled tasks.

use std::sync::Arc;

use deerflow_domain::crons::Scheduler;
use deerflow_domain::scheduled_tasks::TaskScheduler;
use deerflow_gateway::background::{CronRuns, TaskRuns};
use deerflow_gateway::{GatewayState, ScheduleServices};
use harness::runtime::tasks::TaskKind;

use super::context::Context;
use super::stores::Stores;
use crate::config::SchedulerSettings;

/// Returns the stores and settings for the gateway.
pub(super) fn open(context: &Context<'_>, stores: &Stores) -> anyhow::Result<ScheduleServices> {
    let settings = SchedulerSettings::of(&context.now)?;
    Ok(ScheduleServices {
        crons: stores.crons.clone(),
        tasks: stores.scheduled_tasks.clone(),
        min_once_delay: settings.min_once_delay,
    })
}

/// Starts the schedulers.
pub(super) fn start(
    context: &Context<'_>,
    stores: &Stores,
    gateway: &Arc<GatewayState>,
) -> anyhow::Result<()> {
    let crons = Scheduler::new(
        stores.crons.clone(),
        Arc::new(CronRuns::new(gateway.clone())),
        stores.clock.clone(),
    );
    context.tasks.spawn(
        TaskKind::Service,
        "cron scheduler",
        crons.run(context.tasks.token().clone()),
    );
    let settings = SchedulerSettings::of(&context.now)?;
    let tasks = TaskScheduler::new(
        TaskRuns::firings(gateway),
        settings.enabled,
        settings.poll_interval,
    );
    context.tasks.spawn(
        TaskKind::Service,
        "task scheduler",
        tasks.run(context.tasks.token().clone()),
    );
    Ok(())
}
