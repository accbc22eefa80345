//! Background services that follow the current configuration.

pub(crate) mod expiry;
pub(crate) mod limits;
pub(crate) mod maintenance;
pub(crate) mod turn_weights;
