//! The Redis bridge on real servers. `tests/redis/run.sh` runs these.

mod redis_bell;
mod redis_chaos;
mod redis_contract;
mod redis_losses;
mod redis_nodes;
mod redis_outages;
mod redis_spills;
mod rig;
