//! Fake of Discord: REST v10 and gateway.

mod control;
mod controls;
mod fake;
mod gateway;
mod messages;
mod request;
mod rest;
mod rooms;
mod route;
mod sessions;
mod shared;

pub use controls::DiscordControls;
pub use fake::DiscordFake;
pub use rooms::{Attachment, BOT, CHANNEL, DIRECT, GUILD, PERSON, PersonMessage};
pub use shared::DiscordOptions;
