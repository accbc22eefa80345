//! The embedded client and the gateway give the same results over the same folders and the same
//! configuration.

mod settings;
mod threads;

use std::path::PathBuf;
use std::sync::Arc;

use deerflow_gateway::queries::thread_index::GatewayThreadIndex;
use harness::client::{Client, ClientError, Installation};
use harness::documents::DocumentReader;
use harness::ids::ThreadId;
use serde::Serialize;
use serde_json::json;

use crate::support::{Gateway, HttpResponse, config};
use crate::uploads::Plain;

/// A client and a gateway over the same folders, and a folder of the embedding program.
struct Both {
    gateway: Gateway,
    client: Client,
    thread: ThreadId,
    own: tempfile::TempDir,
}

impl Both {
    async fn new() -> Self {
        let reader: Arc<dyn DocumentReader> = Arc::new(Plain::default());
        let gateway = Gateway::with_documents(reader.clone());
        let installation = Installation {
            config: Some(Arc::new(Arc::new(config()))),
            files: Some(gateway.files.home.clone()),
            file_quota: None,
            documents: Some(reader),
            skills: Some(gateway.state.agent_services.skills.clone()),
            memories: Some(gateway.state.agent_services.user_memories.clone()),
            threads: Some(Arc::new(GatewayThreadIndex(gateway.state.clone()))),
            mcp: Some(gateway.state.agent_services.mcp.clone()),
        };
        let client = Client::new(gateway.runs.clone()).installation(installation);
        let thread = ThreadId::parse(gateway.thread().await).expect("an id");
        Self {
            gateway,
            client,
            thread,
            own: tempfile::tempdir().expect("a folder"),
        }
    }

    /// Writes a file of the embedding program.
    fn put(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.own.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    async fn get(&self, path: &str) -> HttpResponse {
        self.gateway.get(path).await
    }

    fn of_thread(&self, path: &str) -> String {
        format!("/api/threads/{}/{path}", self.thread)
    }
}

/// Asserts that the client and the gateway give the same result, byte for byte.
#[track_caller]
fn assert_same(response: &HttpResponse, result: &impl Serialize) {
    assert_eq!(response.code(), 200, "{}", response.text());
    // The order of fields counts, too.
    assert_eq!(response.text(), json!(result).to_string());
}

/// Asserts that the client and the gateway fail with the same text, except for the first letter's
/// case.
#[track_caller]
fn assert_same_error(
    response: &HttpResponse,
    code: u16,
    result: Result<impl std::fmt::Debug, ClientError>,
) {
    let detail = response.json()["detail"].as_str().map(str::to_lowercase);
    let result = result.expect_err("a refusal").to_string().to_lowercase();
    assert_eq!((response.code(), detail.as_deref()), (code, Some(&*result)));
}
