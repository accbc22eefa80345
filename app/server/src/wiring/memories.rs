//! Updates user memories in the background, with the current configuration.

use std::sync::Arc;

use harness::models::UsageRecorder;
use harness::runtime::checkpoint::Checkpointer;
use harness::runtime::tasks::{TaskKind, Tasks};
use harness::user_memory::{Learner, MemoryRules, MemoryWorker, UserMemories};
use tokio_util::sync::CancellationToken;

use super::agents::ConfiguredAgents;

/// Starts the memory worker in `memory_tasks`. After `stop`, it completes the started updates
/// within a timeout.
pub(super) fn spawn_worker(
    memories: UserMemories,
    checkpoints: Arc<dyn Checkpointer>,
    agents: Arc<ConfiguredAgents>,
    usage_recorder: UsageRecorder,
    memory_tasks: &Tasks,
    stop: CancellationToken,
) {
    let worker = MemoryWorker::new(memories, checkpoints, usage_recorder);
    let now = move || {
        let now = agents.assembled();
        let rules = MemoryRules::from(&now.config.memory);
        let learner = Learner {
            models: now.models.clone(),
            model: rules.model.clone(),
        };
        (rules, learner)
    };
    memory_tasks.spawn(TaskKind::Finish, "memory", worker.run(stop, now));
}
