//! Starts the updates of user memories, with the current configuration.

use std::sync::Arc;

use harness::models::UsageRecorder;
use harness::runtime::tasks::{TaskKind, Tasks};
use harness::user_memory::{Learner, MemoryRules, MemoryWorker};

use super::context::Context;
use super::resources::Resources;
use super::stores::Stores;
use crate::agents::configured::ConfiguredAgents;

/// Starts the memory worker, and returns its tasks. After a shutdown of the context's tasks, it
/// completes the started updates within a timeout.
pub(super) fn start(
    context: &Context<'_>,
    stores: &Stores,
    resources: &Resources,
    agents: Arc<ConfiguredAgents>,
) -> Tasks {
    let usage_recorder = UsageRecorder {
        events: stores.of_events.events.clone(),
        ledger: stores.usage.clone(),
        clock: stores.clock.clone(),
        ids: context.ids.clone(),
    };
    let worker = MemoryWorker::new(
        resources.memories.clone(),
        stores.checkpoints.clone(),
        usage_recorder,
    );
    let now = move || {
        let now = agents.assembled();
        let rules = MemoryRules::from(&now.config.memory);
        let learner = Learner {
            models: now.models.clone(),
            model: rules.model.clone(),
        };
        (rules, learner)
    };
    let tasks = Tasks::new();
    let stop = context.tasks.token().clone();
    tasks.spawn(TaskKind::Finish, "memory", worker.run(stop, now));
    tasks
}
