//! Registers this process among those that share the store.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::time::Instant;

use super::lease_keeper::LeaseKeeper;
use super::stall_watch::StallWatch;
use crate::definition::StoreError;
use crate::kernel::{RunRegistry, Runtime};
use crate::ports::{Lease, WakeSignal};
use deerflow_core::fail_points;
use deerflow_core::tasks::TaskKind;

/// Registers this process and spawns the tasks that renew its lease, detect stalled runs and handle
/// wake-up signals. The lease is released after shutdown, when the last run has ended here.
pub(crate) async fn join(runtime: &Arc<Runtime>, ttl: Duration) -> Result<(), StoreError> {
    let sent = Instant::now();
    let lease = runtime
        .ports
        .nodes
        .register(&runtime.registry.node_lease.node(), ttl)
        .await?;
    fail_points::pass("node.joined");
    runtime.registry.node_lease.confirm(sent, ttl);
    runtime
        .registry
        .node_lease
        .set_shared(lease != Lease::Alone);
    let mut keeper = LeaseKeeper::new(runtime.clone(), ttl);
    runtime
        .ports
        .tasks
        .spawn(TaskKind::Control, "lease keeper", async move {
            keeper.run().await
        });
    let stall = runtime.registry.limits.read().stall;
    if !stall.is_zero() {
        let mut watch = StallWatch::new(runtime.clone(), stall);
        // A run may block the other threads of this process.
        runtime
            .ports
            .tasks
            .spawn(TaskKind::Control, "stall watch", async move {
                watch.run().await
            });
    }
    let tasks = &runtime.ports.tasks;
    let (signals, shared, stop) = (
        runtime.ports.bell.listen(),
        runtime.clone(),
        tasks.token().clone(),
    );
    tasks.spawn(TaskKind::Service, "wake-up signals", async move {
        stop.run_until_cancelled(apply_signals(&shared.registry, signals))
            .await
    });
    let (shared, stop) = (runtime.clone(), tasks.token().clone());
    tasks.spawn(TaskKind::Service, "thread state eviction", async move {
        stop.run_until_cancelled(shared.registry.heads.evict_unused_states())
            .await
    });
    Ok(())
}

/// Wakes the lease keeper or the dispatcher for signals that concern this process.
async fn apply_signals(registry: &RunRegistry, mut signals: BoxStream<'static, WakeSignal>) {
    while let Some(signal) = signals.next().await {
        match signal {
            WakeSignal::Cancelled(run) if registry.active(&run).is_some() => {
                registry.lease_wake.notify_one()
            }
            WakeSignal::Cancelled(_) => {}
            WakeSignal::Waiting => registry.dispatch_wake.wake(),
            WakeSignal::Started(thread) => {
                // There may be no subscriber.
                let _no_subscriber = registry.launches.send(thread);
            }
            WakeSignal::Ended(_) if registry.active.any_waiting() => registry.dispatch_wake.wake(),
            WakeSignal::Ended(_) => {}
            WakeSignal::Missed => {
                registry.lease_wake.notify_one();
                registry.dispatch_wake.wake();
            }
        }
    }
}

#[cfg(test)]
#[path = "join_tests.rs"]
mod tests;
