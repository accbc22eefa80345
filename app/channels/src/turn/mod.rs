//! Handling of one message, or of one group of messages, of a conversation.

mod admission;
mod answer;
mod chat;
mod command;
mod connect;
mod context;
mod conversation;
mod follow;
mod gather;
mod handle;
mod intake;
mod later;
mod live;
mod notice;
mod press;
mod progress;
mod questions;
mod replies;
pub(crate) mod stop_data;
mod stored;

pub(crate) use context::TurnError;
pub(crate) use gather::ReceivedMessage;
pub(crate) use handle::{first_group, handle};
pub(crate) use notice::{notice, set_aside_notice};
pub(crate) use stored::stored_event;
