//! Retries with an `Idempotency-Key`.

mod keys;
mod resources;
mod runs;

use serde_json::Value;

use crate::support::{Gateway, HttpResponse};

const NAME: &str = "idempotency-key";
const REPLAYED: &str = "idempotent-replayed";

async fn send_with_key(gateway: &Gateway, path: &str, name: &str, body: &Value) -> HttpResponse {
    gateway
        .raw("POST", path, body.to_string(), &[(NAME, name)])
        .await
}

async fn runs_of(gateway: &Gateway, thread: &str) -> usize {
    gateway
        .get(&format!("/threads/{thread}/runs?limit=100"))
        .await
        .json()
        .as_array()
        .expect("a list")
        .len()
}

fn run_of(response: &HttpResponse) -> String {
    response
        .header("content-location")
        .rsplit('/')
        .next()
        .expect("an id")
        .to_owned()
}
