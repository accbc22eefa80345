//! The agent as an MCP server: serves it as a tool to one client over two streams.
//!
//! `framing` reads and writes messages, `server` handles requests, and `ask` executes each question
//! as a run. Runs that are active when the client disconnects are cancelled.

mod arguments;
mod artifact;
mod ask;
mod call_limit;
mod elicitation;
mod framing;
mod outcome;
mod parse;
mod ports;
mod progress;
mod progress_sink;
mod server;
mod session;
mod stdio;
mod tools;

pub use ports::{ApprovalCommand, ServerPorts};
pub use session::serve;
pub use stdio::take_standard_streams;
