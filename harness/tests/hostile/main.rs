//! Hostile names, links, archives, addresses and commands against the harness's public API.
//!
//! Tests with `sandbox` in their names need bubblewrap; `tests/sandbox/run.sh` runs them.

#[cfg(feature = "web")]
mod addresses;
#[cfg(feature = "documents")]
mod documents;
mod home;
mod link_races;
mod marked;
mod path_names;
mod sandbox_bombs;
mod sandbox_kill;
mod support;
