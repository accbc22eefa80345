//! Gateways as real processes that are killed, frozen and stopped: one alone, and three on one Postgres and one Redis.

mod alone;
mod chaos;
mod dice;
mod follower;
mod rig;
mod several;
mod takeover;
mod twins;
