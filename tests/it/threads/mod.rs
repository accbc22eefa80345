//! `/api/threads`.

mod artifacts;
mod branches;
mod create;
mod delete;
mod documents;
mod history;
mod patch;
mod search;
mod state;
mod transcript;
