//! Service of one bot account: its lease, its connection and its conversations.

mod conversations;
mod holder;
mod lease;
mod retry;
mod sink;

pub(crate) use holder::{HolderEnd, serve_account};
