//! HTTP calls to untrusted hosts that users, models or web pages specify. No call reaches a private
//! network.
//!
//! [`Egress`] contains the rules. [`GuardedClient`] makes the calls: it resolves a name once,
//! refuses forbidden addresses and connects to the checked addresses, which prevents DNS rebinding.
//! It follows no redirect and uses no proxy; a caller that follows redirects checks each target.

mod address;
mod client;
mod egress;
mod host_rules;

pub use address::{is_own, is_public};
pub use client::{GuardedClient, Lookup, SystemLookup, forbidden};
pub use egress::{Egress, Forbidden, Ports};
pub use host_rules::{BadEntry, Denied, HostRules, Target};
