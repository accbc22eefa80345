//! The HTTP server: the route table, connections and their timeouts, and CORS.

pub(crate) mod router;
pub(crate) mod serve;

mod cors;
mod lingering_close;
mod probe;
mod trace_ids;
mod write_timeout;
