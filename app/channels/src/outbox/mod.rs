//! Delivery of the messages in the outbox.

mod retry;
mod sender;

pub(crate) use sender::wake;
