//! Feishu and Lark: the long connection, cards, and files.

mod adapter;
mod api;
mod cardkit;
mod cards;
mod content;
#[cfg(test)]
mod contract_tests;
mod cursor;
mod decode;
#[cfg(any(test, feature = "testkit"))]
pub(crate) mod decoding_kit;
mod deliver;
mod endpoint;
mod factory;
mod failure;
#[cfg(test)]
#[path = "fault_tests.rs"]
mod fault_tests;
mod frame;
mod listen;
mod live;
mod live_state;
mod missed;
mod parts;
mod post;
mod scopes;
#[cfg(test)]
mod setup;

pub use factory::FeishuFactory;
