//! Gateways as real processes that are killed, frozen and stopped: one alone, and three on one Postgres and one Redis.

mod alone;
mod balancer;
mod chaos;
mod clocks;
mod follower;
mod keys;
mod outages;
mod partitions;
mod play;
mod points;
mod rig;
mod servers;
mod several;
mod takeover;
mod twins;
mod users;
mod viewers;
