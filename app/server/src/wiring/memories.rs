//! Learns from conversations in the background, by the configuration in force.

use std::sync::Arc;

use harness::memory::{Learner, Memories, MemoryRules, MemoryWorker};
use harness::models::Till;
use harness::runtime::checkpoint::Checkpointer;
use harness::runtime::tasks::{TaskKind, Tasks};
use tokio_util::sync::CancellationToken;

use super::agents::ConfiguredAgents;

/// Learns until `stop`, in a task of `lessons`, which ends when what was begun has had its time.
pub(super) fn follow(
    memories: Memories,
    checkpoints: Arc<dyn Checkpointer>,
    agents: Arc<ConfiguredAgents>,
    till: Till,
    lessons: &Tasks,
    stop: CancellationToken,
) {
    let worker = MemoryWorker::new(memories, checkpoints, till);
    let now = move || {
        let now = agents.assembled();
        let rules = MemoryRules::from(&now.config.memory);
        let learner = Learner {
            models: now.models.clone(),
            model: rules.model.clone(),
        };
        (rules, learner)
    };
    lessons.spawn(TaskKind::Finish, "memory", worker.run(stop, now));
}
