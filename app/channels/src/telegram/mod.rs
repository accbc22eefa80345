//! Telegram: long polling of the Bot API, drafts and edits, messages in HTML.

mod adapter;
mod api;
mod attachment;
mod batch;
mod body;
#[cfg(any(test, feature = "testkit"))]
pub(crate) mod decoding_kit;
mod download;
mod event;
mod factory;
mod failure;
mod live;
mod live_state;
mod me;
mod poll;
mod send;
mod shown;
mod words;

#[cfg(test)]
mod adapter_tests;
#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod live_tests;
#[cfg(test)]
mod poll_tests;
#[cfg(test)]
mod test_bench;

pub use adapter::TelegramPlatform;
pub use factory::TelegramFactory;
