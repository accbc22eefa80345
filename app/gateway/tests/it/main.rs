//! The gateway over the runtime in memory: both dialects, request by request.

mod artifacts;
mod assistants;
mod crons;
mod feed;
mod feedback;
mod keys;
mod meta;
mod platform_runs;
mod replay;
mod runs;
mod serving;
mod store;
mod streams;
mod support;
mod thread_options;
mod thread_rows;
mod threads;
mod uploads;
