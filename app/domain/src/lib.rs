//! Records, ports and services of the application that the runtime does not need. No HTTP, no SQL.

pub mod accounts;
pub mod api_keys;
pub mod assistants;
pub mod branches;
pub mod channels;
pub mod containment;
pub mod crons;
pub mod feedback;
pub mod flows;
pub mod in_memory;
pub mod items;
pub mod maintenance;
pub mod operations;
pub mod quota_usage;
pub mod readiness;
pub mod scheduled_tasks;
pub mod thread_log;
pub mod threads;
pub mod usage;

#[cfg(any(test, feature = "testkit"))]
pub mod testkit;
