//! Service of one bot account: its lease, its events, its conversations and its outbox.

mod active;
mod bot;
mod conversations;
mod exchanges;
mod holder;
mod lanes;
mod pacing;
mod receipt;
mod retry;
mod sender;
mod sink;

pub(crate) use active::ActiveTurn;
pub(crate) use bot::{Bot, Hub, thread_of};
pub(crate) use exchanges::Exchange;
pub(crate) use holder::{HolderEnd, serve_account};
pub(crate) use lanes::Lane;
pub(crate) use pacing::Purpose;
pub(crate) use receipt::show;
pub(crate) use sender::wake as wake_chat;
