//! Fake of Slack: Web API and Socket Mode.

mod answer;
mod chat;
mod connection;
mod control;
mod conversations;
mod deliveries;
mod files;
mod handle;
mod limits;
mod links;
mod methods;
mod options;
mod params;
mod people;
mod routes;
mod shared;
mod streams;
mod workspace;

pub use handle::SlackFake;
pub use options::{DuplicateAnswer, SlackOptions};
pub use workspace::{ChannelKind, SlackFile, SlackMessage};
