//! The gateway over the runtime in memory: both dialects, request by request.

mod aids;
mod artifacts;
mod assistants;
mod bad_input;
mod crons;
mod feed;
mod feedback;
mod keys;
mod memory;
mod meta;
mod openapi;
mod platform_runs;
mod repeats;
mod replay;
mod runs;
mod schema;
mod serving;
mod store;
mod streams;
mod support;
mod thread_options;
mod thread_rows;
mod threads;
mod uploads;
