//! Strict fakes of chat platforms.
//!
//! A fake refuses what its platform refuses: unknown ids, texts one unit too long, a second poller,
//! exceeded rate limits. Tests script faults and read what was sent through its Rust handle, or
//! through the control routes below `/_fake/` of the program `chat-platform`.

pub mod acme;
pub mod common;
pub mod dingtalk;
pub mod discord;
pub mod feishu;
pub mod slack;
pub mod telegram;
pub mod wecom;
