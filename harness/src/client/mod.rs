//! Embedded client: runs the agents of a runtime and offers the gateway's other operations, in this
//! process and without HTTP.
//!
//! A [`Client`] is built from a configuration, or over an existing runtime ([`Client::new`] and an
//! [`Installation`]). It acts for the bound actor, or for the default user. Its results are the
//! types that the gateway serialises to JSON.
//!
//! ```
//! use deerflow_harness::client::Client;
//! use deerflow_harness::config::AppConfig;
//! use deerflow_harness::ids::ThreadId;
//! use deerflow_harness::models::ScriptedModel;
//!
//! # async fn example(home: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
//! // The configuration has no models, so the example adds one; the scripted model follows the script in the message.
//! let client = Client::builder(AppConfig::default())
//!     .home(home)
//!     .model(std::sync::Arc::new(ScriptedModel::default()))
//!     .plan_mode(true)
//!     .build()?;
//! let thread = ThreadId::parse("a-conversation")?;
//!
//! std::fs::write(home.join("notes.txt"), "buy milk")?;
//! let uploaded = client.upload_files(&thread, &[home.join("notes.txt")]).await?;
//! assert_eq!(uploaded.files[0].virtual_path, "/mnt/user-data/uploads/notes.txt");
//! assert_eq!(client.chat("then say It is about milk.", &thread).await?, "It is about milk.");
//!
//! let (bytes, media_type) = client.get_artifact(&thread, &uploaded.files[0].virtual_path).await?;
//! assert_eq!((&*bytes, &*media_type), (&b"buy milk"[..], "text/plain; charset=utf-8"));
//! assert!(client.list_skills(true).await?.skills.is_empty());
//! # Ok(())
//! # }
//! # let home = std::env::temp_dir().join(format!("deerflow-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&home).unwrap();
//! # let runtime = tokio::runtime::Runtime::new().unwrap();
//! # runtime.block_on(example(&home)).unwrap();
//! # std::fs::remove_dir_all(&home).unwrap();
//! ```

mod agent_tools;
mod artifacts;
mod builder;
mod catalog;
#[expect(
    clippy::module_inception,
    reason = "the client is the main type of this module"
)]
mod client;
mod conversation;
mod error;
mod event;
mod event_adapter;
mod from_config;
mod goals;
mod host_file;
mod installation;
#[cfg(feature = "mcp")]
mod mcp;
mod memory;
mod options;
mod skills;
mod threads;
mod uploads;

pub use artifacts::MAX_ARTIFACT_BYTES;
pub use builder::ClientBuilder;
pub use client::Client;
pub use conversation::Conversation;
pub use error::ClientError;
pub use event::{ApprovalRequest, EventKind, Question, StreamEvent};
pub use installation::Installation;
pub use options::ChatOptions;

#[cfg(test)]
#[path = "answers_tests.rs"]
mod answers_tests;
#[cfg(test)]
#[path = "builder_tests.rs"]
mod builder_tests;
#[cfg(test)]
#[path = "question_tests.rs"]
mod question_tests;
// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::client::ApprovalRequest as AskedCall;
#[doc(hidden)]
pub use crate::client::MAX_ARTIFACT_BYTES as LARGEST_ARTIFACT;

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
