//! Violates every rule of the OpenAPI document: each violation is rejected with a text and has no
//! side effects.

mod bodies;
mod config;
mod limits;
mod nulls;
mod parameters;

use serde_json::{Value, json};

use crate::schema::{Document, Operation};
use crate::support::{Gateway, HttpResponse};

const UNKNOWN: &str = "11111111-1111-4111-8111-111111111111";

/// A gateway with a thread, an assistant, a cron and an item, and their ids for paths.
struct Fixture {
    gateway: Gateway,
    thread: String,
    assistant: String,
    cron: String,
}

impl Fixture {
    async fn new() -> Self {
        let gateway = Gateway::new();
        let thread = gateway.thread().await;
        let made = |response: HttpResponse, id: &str| {
            response.json()[id].as_str().expect("an id").to_owned()
        };
        let assistant = made(
            gateway
                .post("/assistants", json!({ "graph_id": "lead_agent" }))
                .await,
            "assistant_id",
        );
        let cron = json!({ "assistant_id": "lead_agent", "schedule": "0 8 * * *" });
        let cron = made(gateway.post("/runs/crons", cron).await, "cron_id");
        let item = json!({ "namespace": ["n"], "key": "k", "value": { "a": 1 } });
        assert_eq!(
            gateway.send("PUT", "/store/items", Some(item)).await.code(),
            204
        );
        Self {
            gateway,
            thread,
            assistant,
            cron,
        }
    }

    async fn document(&self) -> Document {
        Document(self.gateway.get("/openapi.json").await.json())
    }

    /// Returns the operation's path with existing ids.
    fn path(&self, operation: &Operation) -> String {
        let path = operation
            .path
            .replace("{thread_id}", &self.thread)
            .replace("{assistant_id}", &self.assistant);
        let path = path
            .replace("{cron_id}", &self.cron)
            .replace("{run_id}", UNKNOWN);
        path.replace("{checkpoint_id}", UNKNOWN)
            .replace("{namespace}", "n")
    }

    /// Returns all data that a bad request could have changed.
    async fn everything(&self) -> Value {
        let ask = async |path: &str| self.gateway.post(path, json!({})).await.json();
        json!([
            ask("/threads/search").await,
            ask("/assistants/search").await,
            ask("/runs/crons/search").await,
            ask("/store/items/search").await,
            self.gateway
                .get(&format!("/threads/{}/runs", self.thread))
                .await
                .json(),
            self.gateway
                .get(&format!("/threads/{}/state", self.thread))
                .await
                .json(),
        ])
    }
}

/// Returns the violation if the response is not a client error with a text. The platform reports
/// invalid labels of the store as plain text, and errors of commands in an envelope, whose status
/// is 200 if it could read the command.
fn violation(response: &HttpResponse, operation: &Operation, sent: &str) -> Option<String> {
    let bare = operation.path.starts_with("/store/")
        && response.header("content-type").starts_with("text/plain");
    let description = || {
        bare || serde_json::from_slice::<Value>(&response.body)
            .is_ok_and(|body| body["detail"].is_string())
    };
    let is_refused_command = || {
        operation.id == "command_thread"
            && serde_json::from_slice::<Value>(&response.body)
                .is_ok_and(|body| body["type"] == "error" && body["message"].is_string())
    };
    let refused = (response.status.is_client_error() && description()) || is_refused_command();
    let shown = || {
        String::from_utf8_lossy(&response.body)
            .chars()
            .take(200)
            .collect::<String>()
    };
    (!refused).then(|| {
        format!(
            "{} with {}: {} {}",
            operation.id,
            sent.chars().take(80).collect::<String>(),
            response.code(),
            shown()
        )
    })
}

fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}
