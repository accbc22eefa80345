//! Feishu and Lark: the long connection, cards, and files.

mod adapter;
mod api;
mod cardkit;
mod cards;
mod content;
mod cursor;
mod decode;
mod deliver;
mod endpoint;
mod factory;
mod failure;
mod frame;
mod listen;
mod live;
mod live_state;
mod missed;
mod parts;
mod post;
#[cfg(test)]
mod setup;

pub use factory::FeishuFactory;
