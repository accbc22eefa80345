//! Learns from conversations in the background, by the configuration in force.

use std::sync::Arc;

use harness::memory::{Learner, Memories, MemoryRules, MemoryWorker};
use harness::runtime::checkpoint::Checkpointer;
use harness::runtime::tasks::{TaskKind, Tasks};

use super::agents::ConfiguredAgents;

pub(super) fn follow(memories: Memories, checkpoints: Arc<dyn Checkpointer>, agents: Arc<ConfiguredAgents>, tasks: &Tasks) {
    let worker = MemoryWorker::new(memories, checkpoints);
    let now = move || {
        let now = agents.assembled();
        let rules = MemoryRules::from(&now.config.memory);
        let learner = Learner { models: now.models.clone(), model: rules.model.clone() };
        (rules, learner)
    };
    tasks.spawn(TaskKind::Service, "memory", worker.run(tasks.token().clone(), now));
}
