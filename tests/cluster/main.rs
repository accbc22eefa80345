//! Gateways as real processes that are killed, frozen and stopped: a single one, and three with one
//! Postgres and one Redis.

mod balancer;
mod channels;
mod chaos;
mod clocks;
mod concurrent_runs;
mod concurrent_users;
mod fail_points;
mod flows;
mod follower;
mod healthy_cluster;
mod idempotency_keys;
mod outages;
mod partitions;
mod protocol;
mod rig;
mod servers;
mod sign_in;
mod single_node;
mod takeover;
mod viewers;
mod workload;
