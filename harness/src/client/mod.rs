//! The embedded client: conversations with the agents of a runtime, in this process and without HTTP.
//!
//! ```no_run
//! # async fn example(runs: std::sync::Arc<deerflow_harness::runtime::runs::RunsFacade>) -> Result<(), Box<dyn std::error::Error>> {
//! use deerflow_harness::client::Client;
//! use deerflow_harness::ids::ThreadId;
//!
//! let client = Client::new(runs);
//! let thread = ThreadId::parse("a-conversation")?;
//! println!("{}", client.chat("What is the capital of France?", &thread).await?);
//! # Ok(())
//! # }
//! ```

#[expect(clippy::module_inception, reason = "the client is what this module is about")]
mod client;
mod conversation;
mod error;
mod event;
mod options;
mod telling;

pub use client::Client;
pub use conversation::Conversation;
pub use error::ClientError;
pub use event::{EventKind, StreamEvent};
pub use options::ChatOptions;

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
