//! Chat channels of all platforms whose gateways are killed, frozen and stopped.

mod ask;
mod figures;
mod records;
mod rig;
mod short;
mod tally;
