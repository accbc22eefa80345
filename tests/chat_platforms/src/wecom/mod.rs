//! Fake of WeCom's long connection for AI bots.
//!
//! It accepts one connection of a bot, refuses what the platform refuses, and shows what a person
//! would see. Time can be advanced, so that streams expire.

mod control;
mod fake;
mod files;
mod options;
mod replies;
mod rules;
mod session;
mod state;

#[cfg(test)]
#[path = "wecom_tests.rs"]
mod tests;

pub use fake::WeComFake;
pub use files::encrypt;
pub use options::WeComOptions;
pub use state::{Shown, ShownKind};
