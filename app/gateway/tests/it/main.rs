//! The gateway over the runtime in memory: both dialects, request by request.

mod artifacts;
mod assistants;
mod feed;
mod feedback;
mod meta;
mod platform_runs;
mod replay;
mod runs;
mod serving;
mod streams;
mod support;
mod thread_rows;
mod threads;
mod uploads;
