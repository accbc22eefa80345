//! Built-in adapter kinds.

pub mod fake;
pub mod model;
#[cfg(feature = "http")]
pub mod pi_mono;
