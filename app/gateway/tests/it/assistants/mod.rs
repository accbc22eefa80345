//! Assistants of graphs and of users, and their runs.

mod graphs;
mod users;

use serde_json::{Value, json};

use crate::support::Gateway;

const GONE: &str = "9c909fe5-1423-4566-9403-37f8a945b29b";

async fn make(gateway: &Gateway, body: Value) -> Value {
    let made = gateway.post("/assistants", body).await;
    assert_eq!(made.code(), 200, "{}", made.text());
    made.json()
}

async fn default_id(gateway: &Gateway) -> String {
    gateway.post("/assistants/search", json!({})).await.json()[0]["assistant_id"]
        .as_str()
        .expect("an id")
        .to_owned()
}
