//! Ports of the logs of threads.

use std::sync::Arc;

use deerflow_domain::thread_log::ThreadLogStore;
use harness::clock::Clock;
use harness::runtime::checkpoint::Checkpointer;
use harness::runtime::runs::RunsFacade;
use harness::runtime::tasks::Tasks;

/// Ports of the logs.
#[derive(Debug, Clone)]
pub struct LogPorts {
    /// Runs whose frames are converted.
    pub runs: Arc<RunsFacade>,
    /// Positions of runs.
    pub positions: Arc<dyn ThreadLogStore>,
    /// States of threads, for runs whose frames are gone.
    pub checkpoints: Arc<dyn Checkpointer>,
    /// Clock of the events.
    pub clock: Arc<dyn Clock>,
    /// Spawner of the tasks that fill logs.
    pub tasks: Tasks,
}
