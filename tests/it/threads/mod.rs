//! `/api/threads`.

mod artifacts;
mod create;
mod delete;
mod documents;
mod history;
mod patch;
mod search;
mod state;
mod transcript;
