//! Queries shared by several routes: threads and their transcripts, assistants, regeneration and
//! costs.

pub mod branch;
pub mod history;
pub mod regenerate;
pub mod thread_index;

pub(crate) mod assistant_settings;
pub(crate) mod assistants;
pub(crate) mod event_rows;
pub(crate) mod journaled_run;
pub(crate) mod pricing;
pub(crate) mod threads;
