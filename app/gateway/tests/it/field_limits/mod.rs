//! Limits of stored fields in bytes, on every route that accepts them.

mod messages;
mod metadata;
mod others;

use serde_json::{Value, json};

use crate::support::{Gateway, HttpResponse};

const METADATA: usize = 64 << 10;
const CONFIG: usize = 256 << 10;
const MESSAGE: usize = 5 << 20;
const ITEM: usize = 1 << 20;

/// Returns an object with `size` bytes of compact JSON.
fn sized(size: usize) -> Value {
    let fixed = json!({ "m": "" }).to_string().len();
    json!({ "m": "x".repeat(size - fixed) })
}

/// Returns the text that refuses a field one byte beyond its limit.
fn refusal(field: &str, limit: usize) -> String {
    let size = limit + 1;
    format!("{field} is limited to {limit} bytes as JSON, this one has {size}")
}

/// Asserts that the response refuses a field one byte beyond its limit.
fn assert_refused(response: &HttpResponse, field: &str, limit: usize) {
    assert_eq!(
        response.code(),
        413,
        "{}",
        &response.text()[..200.min(response.text().len())]
    );
    assert_eq!(response.json(), json!({ "detail": refusal(field, limit) }));
}

/// Returns the id of a new thread of the lead agent.
async fn lead_thread(gateway: &Gateway) -> String {
    let body = json!({ "metadata": { "graph_id": "lead_agent" } });
    let made = gateway.post("/threads", body).await.json();
    made["thread_id"].as_str().expect("an id").to_owned()
}
