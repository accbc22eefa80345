//! Built-in adapter kinds.

pub mod fake;
mod known;
pub mod model;
#[cfg(feature = "http")]
pub mod pi_mono;
