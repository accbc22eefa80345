//! Scheduled tasks: prompts that run once or repeatedly, their runs, store and scheduler.

mod firings;
mod in_memory;
mod record;
mod scheduler;
mod store;
mod timing;
mod transitions;

pub use firings::{StartRefusal, TaskFirings, TaskRunner, TriggerError};
pub use in_memory::InMemoryTaskStore;
pub use record::{
    ContextMode, RunProgress, ScheduledTask, TaskRun, TaskRunStatus, TaskStatus, TaskTrigger,
};
pub use scheduler::TaskScheduler;
pub use store::{MAX_ENDED_RUNS, TaskCreated, TaskStore, TaskUpdated};
pub use timing::{TaskSchedule, TimingError};
pub use transitions::{ACTIVE_RUN, Begun, Firing, advance, begin};
