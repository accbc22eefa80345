//! Violates every rule of the OpenAPI document: each violation is rejected with a text and has no
//! side effects.

use serde_json::{Map, Value, json};

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
/// invalid labels of the store as plain text.
fn violation(response: &HttpResponse, operation: &Operation, sent: &str) -> Option<String> {
    let bare = operation.path.starts_with("/store/")
        && response.header("content-type").starts_with("text/plain");
    let description = || {
        bare || serde_json::from_slice::<Value>(&response.body)
            .is_ok_and(|body| body["detail"].is_string())
    };
    let refused = response.status.is_client_error() && description();
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

#[tokio::test]
async fn non_object_body_is_rejected() {
    let fixture = Fixture::new().await;
    let mut violations = Vec::new();
    let (document, before) = (fixture.document().await, fixture.everything().await);
    let deep = format!("{}1{}", "[".repeat(1_000), "]".repeat(1_000));
    let deep_field = format!(
        "{{\"metadata\":{}1{}}}",
        "{\"a\":".repeat(1_000),
        "}".repeat(1_000)
    );
    for operation in document
        .operations()
        .iter()
        .filter(|operation| operation.body.is_some())
    {
        let mut bodies = vec![
            "1",
            "1.5",
            "true",
            "\"text\"",
            "[1]",
            "[[]]",
            "{bad",
            "{\"a\":1",
            "\u{0}",
            "nul",
            deep.as_str(),
            deep_field.as_str(),
        ];
        if operation.body_required {
            bodies.extend(["", " ", "null"]);
        }
        for body in bodies {
            let response = fixture
                .gateway
                .raw(
                    operation.method(),
                    &fixture.path(operation),
                    body.to_owned(),
                    &[],
                )
                .await;
            violations.extend(violation(
                &response,
                operation,
                &body.chars().take(20).collect::<String>(),
            ));
        }
        let response = fixture
            .gateway
            .raw(
                operation.method(),
                &fixture.path(operation),
                vec![0xff, 0xfe, b'{'],
                &[],
            )
            .await;
        violations.extend(violation(&response, operation, "no UTF-8"));
    }
    assert_none(&violations);
    assert_eq!(fixture.everything().await, before);
}

#[tokio::test]
async fn field_with_wrong_type_or_range_is_rejected() {
    let fixture = Fixture::new().await;
    let mut violations = Vec::new();
    let (document, before) = (fixture.document().await, fixture.everything().await);
    let mut tried = 0;
    for operation in document.operations() {
        let Some(schema) = &operation.body else {
            continue;
        };
        let (schema, listed) = match document.resolve(schema).get("items") {
            Some(item) => (item, true),
            None => (schema, false),
        };
        let base = document.sample(schema);
        for (name, field) in document.resolve(schema)["properties"]
            .as_object()
            .expect("properties")
        {
            let too_many = field["maxItems"]
                .as_u64()
                .map(|most| vec![document.sample(&field["items"]); most as usize + 1].into());
            for wrong in wrong_values()
                .into_iter()
                .chain(too_many)
                .filter(|value| !value.is_null() && !document.fits(field, value))
            {
                let mut body = base.as_object().cloned().unwrap_or_else(Map::new);
                body.insert(name.clone(), wrong.clone());
                let body = if listed {
                    json!([body])
                } else {
                    Value::Object(body)
                };
                let response = fixture
                    .gateway
                    .send(operation.method(), &fixture.path(&operation), Some(body))
                    .await;
                violations.extend(violation(
                    &response,
                    &operation,
                    &format!("{name}: {wrong}"),
                ));
                tried += 1;
            }
        }
    }
    assert!(tried > 1_000, "{tried}");
    assert_none(&violations);
    assert_eq!(fixture.everything().await, before);
}

#[tokio::test]
async fn null_is_rejected_exactly_where_the_document_forbids_it() {
    let fixture = Fixture::new().await;
    let mut violations = Vec::new();
    let document = fixture.document().await;
    for operation in document.operations() {
        let Some(schema) = operation
            .body
            .as_ref()
            .filter(|schema| document.resolve(schema).get("items").is_none())
        else {
            continue;
        };
        let base = document.sample(schema);
        for (name, field) in document.resolve(schema)["properties"]
            .as_object()
            .expect("properties")
        {
            let mut body = base.clone();
            body[name] = Value::Null;
            let response = fixture
                .gateway
                .send(operation.method(), &fixture.path(&operation), Some(body))
                .await;
            if !document.fits(field, &Value::Null) || response.status.is_client_error() {
                violations.extend(violation(&response, &operation, &format!("{name}: null")));
            }
            if document.fits(field, &Value::Null) && response.text().contains("should not be null")
            {
                violations.push(format!("{} does not accept {name}: null", operation.id));
            }
            assert!(response.code() < 500, "{} with {name}: null", operation.id);
        }
    }
    assert_none(&violations);
}

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

#[tokio::test]
async fn every_documented_enum_value_is_accepted() {
    let fixture = Fixture::new().await;
    let (document, mut tried) = (fixture.document().await, 0);
    for operation in document.operations() {
        let Some(schema) = operation
            .body
            .as_ref()
            .filter(|schema| document.resolve(schema).get("items").is_none())
        else {
            continue;
        };
        for (name, field) in document.resolve(schema)["properties"]
            .as_object()
            .expect("properties")
        {
            for word in document.words(field) {
                let mut body = document.sample(schema);
                body[name] = word.clone();
                let response = fixture
                    .gateway
                    .send(operation.method(), &fixture.path(&operation), Some(body))
                    .await;
                let text = response.text().chars().take(200).collect::<String>();
                assert!(
                    response.code() != 422 && response.code() < 500,
                    "{} with {name}: {word}: {} {text}",
                    operation.id,
                    response.code()
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 150, "{tried}");
}

/// Returns values of every type, some of them outside of every range.
fn wrong_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(-1e300),
        json!(u64::MAX),
        json!(""),
        json!("bogus"),
        json!("\u{0}"),
        json!([]),
        json!([1]),
        json!([null]),
        json!([{}]),
        json!({}),
        json!({ "bogus": 1 }),
        json!({ "a": { "b": [1, { "c": null }] } }),
    ]
}
