//! The channel service of a process: it starts, restarts and stops channels as their configuration
//! says.

mod control;
mod inspector;
mod key;
mod parts;
mod profile;
mod start;
mod supervisor;
mod vault;

pub use inspector::{ChannelInspector, InspectedChannel};
pub use key::{CredentialKey, KeyError};
pub use parts::{ChannelParts, ChannelService};
