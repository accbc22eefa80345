//! Calls to hosts that somebody else named: a user, a model, a web page. None of them leads into a private network.
//!
//! [`Egress`] says which addresses may be named, [`GuardedClient`] calls them: it resolves a name once, refuses what it should not
//! reach and connects to what was checked, so a name cannot change its meaning in between. It follows no redirect and takes no
//! proxy; who follows one asks it again.

mod address;
mod client;
mod egress;
mod host_rules;

pub use address::{is_own, is_public};
pub use client::{GuardedClient, Lookup, SystemLookup, forbidden};
pub use egress::{Egress, Forbidden, Ports};
pub use host_rules::{BadEntry, Denied, HostRules, Target};
