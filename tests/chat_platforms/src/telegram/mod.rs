//! Fake of Telegram's Bot API.

mod control;
mod entities;
mod failure;
mod handle;
mod limits;
mod methods;
mod options;
mod params;
mod people;
mod polling;
mod queue;
mod routes;
mod sending;
mod shared;
mod signs;
mod uploads;
mod view;
mod world;

pub use handle::TelegramFake;
pub use options::TelegramOptions;
pub use people::{People, Post};
pub use world::{Draft, Posted, PostedFile, PressAnswer};

#[cfg(test)]
mod telegram_tests;
