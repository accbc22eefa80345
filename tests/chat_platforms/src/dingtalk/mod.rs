//! Fake of DingTalk: stream mode and the REST API of robots.

mod answer;
mod cards;
mod control;
mod controls;
mod deliveries;
mod fake;
mod messages;
mod rest;
mod shared;
mod stream;
mod written;

pub use controls::DingTalkControls;
pub use fake::DingTalkFake;
pub use shared::{CLIENT_ID, CLIENT_SECRET, DingTalkOptions, GROUP, STAFF, TEMPLATE};
pub use written::{PersonMessage, WrittenBody};
