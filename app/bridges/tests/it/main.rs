//! The Redis bridge with real servers. `tests/redis/run.sh` runs these tests.

mod redis_chaos;
mod redis_contract;
mod redis_losses;
mod redis_nodes;
mod redis_notifier;
mod redis_outages;
mod redis_spills;
mod rig;
