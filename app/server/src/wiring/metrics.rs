//! Starts the metrics of this process.

use std::sync::Arc;

use harness::runtime::tasks::TaskKind;

use super::context::Context;
use crate::metrics::Metrics;

pub(super) fn start(context: &Context<'_>) -> Arc<Metrics> {
    let metrics = Metrics::start();
    context.tasks.spawn(
        TaskKind::Service,
        "metrics",
        metrics.clone().upkeep_loop(context.tasks.token().clone()),
    );
    Arc::new(metrics)
}
