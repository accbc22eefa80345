//! Creates the event logs of threads for the streaming protocol.

use std::sync::Arc;

use deerflow_gateway::thread_log::{LogLimits, LogPorts, ThreadLogs};
use harness::runtime::runs::RunsFacade;

use super::context::Context;
use super::stores::Stores;

pub(super) fn open(
    context: &Context<'_>,
    stores: &Stores,
    runs: &Arc<RunsFacade>,
) -> Arc<ThreadLogs> {
    let limits = &context.now.runs;
    ThreadLogs::new(
        LogPorts {
            runs: runs.clone(),
            positions: stores.thread_log.clone(),
            checkpoints: stores.checkpoints.clone(),
            clock: stores.clock.clone(),
            tasks: context.tasks.clone(),
        },
        LogLimits {
            events: limits.max_log_events_per_thread,
            bytes: limits.max_log_mb_per_thread << 20,
        },
    )
}
