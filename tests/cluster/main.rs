//! Gateways as real processes that are killed, frozen and stopped: a single one, and three with one
//! Postgres and one Redis.

mod balancer;
mod chaos;
mod clocks;
mod follower;
mod healthy_cluster;
mod keys;
mod outages;
mod partitions;
mod points;
mod rig;
mod servers;
mod single_node;
mod takeover;
mod twins;
mod users;
mod viewers;
mod workload;
