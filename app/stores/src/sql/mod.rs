//! The stores over SQL: one module per port.

pub(crate) mod accounts;
pub(crate) mod api_keys;
pub(crate) mod assistants;
pub(crate) mod channels;
pub(crate) mod checkpoints;
pub(crate) mod crons;
pub(crate) mod feedback;
pub(crate) mod flows;
pub(crate) mod items;
pub(crate) mod maintenance;
pub(crate) mod memories;
pub(crate) mod nodes;
pub(crate) mod operations;
pub(crate) mod quota_usage;
pub(crate) mod requests;
pub(crate) mod run_events;
pub(crate) mod runs;
pub(crate) mod scheduled_tasks;
pub(crate) mod streams;
pub(crate) mod thread_log;
pub(crate) mod threads;
pub(crate) mod usage;
pub(crate) mod user_rows;
pub(crate) mod webhooks;
