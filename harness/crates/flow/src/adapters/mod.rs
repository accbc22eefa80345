//! Built-in adapter kinds.

mod actor_models;
pub mod fake;
mod known;
pub mod model;
#[cfg(feature = "http")]
pub mod pi_mono;
