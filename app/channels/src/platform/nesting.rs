//! Nesting of received JSON.

pub(crate) use harness::json_size::nesting;

/// Maximum nesting of an event.
pub(crate) const MAX_NESTING: usize = 64;
