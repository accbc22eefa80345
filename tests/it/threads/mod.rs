//! `/api/threads`.

mod artifacts;
mod create;
mod delete;
mod feed;
mod history;
mod patch;
mod search;
mod state;
