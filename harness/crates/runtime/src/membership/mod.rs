//! Registration of this process among those that share the store, and its lease.

pub(crate) mod join;
mod lease_keeper;
mod stall_watch;
