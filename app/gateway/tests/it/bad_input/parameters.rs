//! Path and query parameters that violate their schema.

use serde_json::json;

use super::{Fixture, UNKNOWN, assert_none, violation};
use crate::schema::Operation;

#[tokio::test]
async fn invalid_or_unknown_id_is_rejected() {
    let fixture = Fixture::new().await;
    let mut violations = Vec::new();
    let (document, before) = (fixture.document().await, fixture.everything().await);
    for operation in document
        .operations()
        .iter()
        .filter(|operation| operation.path.contains('{'))
    {
        let body = operation
            .body
            .as_ref()
            .map(|schema| document.sample(schema));
        let first = operation
            .path
            .find('{')
            .and_then(|from| Some(&operation.path[from..=from + operation.path[from..].find('}')?]))
            .expect("an id");
        for id in [
            "x",
            "0",
            "-1",
            "null",
            "..%2f..",
            "%00",
            "%ff",
            "a%20b",
            UNKNOWN,
            &"9".repeat(5_000),
        ] {
            let path = fixture.path(&Operation {
                path: operation.path.replace(first, id),
                ..operation.clone()
            });
            let response = fixture
                .gateway
                .send(operation.method(), &path, body.clone())
                .await;
            violations.extend(violation(&response, operation, id));
        }
    }
    assert_none(&violations);
    assert_eq!(fixture.everything().await, before);
}

#[tokio::test]
async fn checkpoint_in_the_path_must_be_a_uuid() {
    let fixture = Fixture::new().await;
    for id in ["x", "true", "-1", "%00"] {
        let response = fixture
            .gateway
            .get(&format!("/threads/{}/state/{id}", fixture.thread))
            .await;
        assert_eq!(
            (response.code(), response.json()),
            (
                422,
                json!({ "detail": "Invalid checkpoint ID: must be a UUID" })
            ),
            "{id}"
        );
    }
}

#[tokio::test]
async fn parameter_with_wrong_type_or_range_is_rejected() {
    let fixture = Fixture::new().await;
    let mut violations = Vec::new();
    let (document, before) = (fixture.document().await, fixture.everything().await);
    let mut tried = 0;
    for operation in document.operations() {
        for (name, schema) in &operation.query {
            let wrong: &[&str] = match schema["type"].as_str() {
                Some("integer") => &["x", "-1", "99999999999999999999", "1e3", "1.5", "[]", ""],
                Some("boolean") => &["perhaps", "2", "[]", "null"],
                _ if schema["enum"].is_array() => &["bogus", "", "[]", "1"],
                _ => continue,
            };
            for value in wrong {
                let path = format!("{}?key=k&{name}={value}", fixture.path(&operation));
                let body = operation
                    .body
                    .as_ref()
                    .map(|schema| document.sample(schema));
                let response = fixture.gateway.send(operation.method(), &path, body).await;
                violations.extend(violation(&response, &operation, &format!("{name}={value}")));
                tried += 1;
            }
        }
    }
    assert!(tried > 30, "{tried}");
    assert_none(&violations);
    assert_eq!(fixture.everything().await, before);
}
