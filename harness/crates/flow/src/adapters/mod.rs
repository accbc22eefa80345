//! Built-in adapter kinds.

pub mod fake;
