//! The journal as the web UI reads it: transcript pages, a run's rows, token counts, changed files.

mod events;
mod messages;
mod page;
mod token_usage;
mod workspace_changes;

pub(crate) use events::run_events;
pub(crate) use messages::{messages, messages_of_any_run, run_messages};
pub(crate) use page::page;
pub(crate) use token_usage::token_usage;
pub(crate) use workspace_changes::workspace_changes;
