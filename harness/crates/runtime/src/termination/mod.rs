//! Ends of runs that no task executes: commits them and publishes them once they are durable.

pub(crate) mod end_commit;
mod finalizer;
mod lost_input;
mod terminal_event;
mod terminate;

#[cfg(test)]
pub(crate) use end_commit::end_orphan;
pub(crate) use end_commit::{END_RETRY_INTERVAL, LOST_TEXT, commit_until_stored};
pub(crate) use lost_input::{is_memory_journaled, journaled_human_input, restored_input};
pub(crate) use terminal_event::terminal_of;
pub(crate) use terminate::{end_orphaned, end_queued, end_unstartable};
