//! Flows over HTTP.

mod archives;
mod catalog;
mod changes;
mod hostile;
mod reads;
mod users;

use serde_json::Value;

use crate::support::{FLOW, Gateway, HttpResponse};

const YAML: (&str, &str) = ("content-type", "application/yaml");

/// Sends a flow as YAML.
async fn send(gateway: &Gateway, method: &str, path: &str, text: &str) -> HttpResponse {
    gateway.raw(method, path, text.to_owned(), &[YAML]).await
}

/// Creates the flow `say-hello`.
async fn created(gateway: &Gateway) -> HttpResponse {
    let response = send(gateway, "POST", "/api/flows", FLOW).await;
    assert_eq!(response.code(), 201, "{}", response.text());
    response
}

/// Returns the codes of the findings of a refused flow.
fn codes(response: &HttpResponse) -> Vec<String> {
    let detail = response.json()["detail"].clone();
    let findings = detail.as_array().cloned().unwrap_or_default();
    let code = |finding: &Value| finding["code"].as_str().unwrap_or_default().to_owned();
    findings.iter().map(code).collect()
}
