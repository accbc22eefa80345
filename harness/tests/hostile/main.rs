//! Hostile names, links, archives, addresses and commands, against the harness as its users have it.
//!
//! Those with `sandbox` in their names need bubblewrap; `tests/sandbox/run.sh` runs them.

mod marked;
mod sandbox_bombs;
mod sandbox_kill;
mod support;
