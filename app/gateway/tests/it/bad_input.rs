//! Everything that the document says of a request, broken in turn: each is refused with a text, and nothing changes.

use serde_json::{Map, Value, json};

use crate::schema::{Document, Operation};
use crate::support::{Answer, Gateway};

const UNKNOWN: &str = "11111111-1111-4111-8111-111111111111";

/// A gateway with a thread, an assistant, a cron and an item, and what stands for them in paths.
struct Furnished {
    gateway: Gateway,
    thread: String,
    assistant: String,
    cron: String,
}

impl Furnished {
    async fn new() -> Self {
        let gateway = Gateway::new();
        let thread = gateway.thread().await;
        let made = |answer: Answer, id: &str| answer.json()[id].as_str().expect("an id").to_owned();
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

    /// The operation's path, with ids of what is there.
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

    /// All that a bad request could have changed.
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

/// What is not as it must be: refused as the client's fault, with a text. The platform tells what is wrong with a label of the
/// store as bare text.
fn flaw(answer: &Answer, operation: &Operation, sent: &str) -> Option<String> {
    let bare = operation.path.starts_with("/store/")
        && answer.header("content-type").starts_with("text/plain");
    let told = || {
        bare || serde_json::from_slice::<Value>(&answer.body)
            .is_ok_and(|body| body["detail"].is_string())
    };
    let refused = answer.status.is_client_error() && told();
    let shown = || {
        String::from_utf8_lossy(&answer.body)
            .chars()
            .take(200)
            .collect::<String>()
    };
    (!refused).then(|| {
        format!(
            "{} with {}: {} {}",
            operation.id,
            sent.chars().take(80).collect::<String>(),
            answer.code(),
            shown()
        )
    })
}

fn assert_none(flaws: &[String]) {
    assert!(flaws.is_empty(), "{}", flaws.join("\n"));
}

#[tokio::test]
async fn a_body_that_is_no_object_is_refused() {
    let furnished = Furnished::new().await;
    let mut flaws = Vec::new();
    let (document, before) = (furnished.document().await, furnished.everything().await);
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
            let answer = furnished
                .gateway
                .raw(
                    operation.method(),
                    &furnished.path(operation),
                    body.to_owned(),
                    &[],
                )
                .await;
            flaws.extend(flaw(
                &answer,
                operation,
                &body.chars().take(20).collect::<String>(),
            ));
        }
        let answer = furnished
            .gateway
            .raw(
                operation.method(),
                &furnished.path(operation),
                vec![0xff, 0xfe, b'{'],
                &[],
            )
            .await;
        flaws.extend(flaw(&answer, operation, "no UTF-8"));
    }
    assert_none(&flaws);
    assert_eq!(furnished.everything().await, before);
}

#[tokio::test]
async fn a_field_of_the_wrong_type_or_range_is_refused() {
    let furnished = Furnished::new().await;
    let mut flaws = Vec::new();
    let (document, before) = (furnished.document().await, furnished.everything().await);
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
                let answer = furnished
                    .gateway
                    .send(operation.method(), &furnished.path(&operation), Some(body))
                    .await;
                flaws.extend(flaw(&answer, &operation, &format!("{name}: {wrong}")));
                tried += 1;
            }
        }
    }
    assert!(tried > 1_000, "{tried}");
    assert_none(&flaws);
    assert_eq!(furnished.everything().await, before);
}

#[tokio::test]
async fn null_is_refused_where_the_document_does_not_take_it_and_only_there() {
    let furnished = Furnished::new().await;
    let mut flaws = Vec::new();
    let document = furnished.document().await;
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
            let answer = furnished
                .gateway
                .send(operation.method(), &furnished.path(&operation), Some(body))
                .await;
            if !document.fits(field, &Value::Null) || answer.status.is_client_error() {
                flaws.extend(flaw(&answer, &operation, &format!("{name}: null")));
            }
            if document.fits(field, &Value::Null) && answer.text().contains("should not be null") {
                flaws.push(format!("{} does not take {name}: null", operation.id));
            }
            assert!(answer.code() < 500, "{} with {name}: null", operation.id);
        }
    }
    assert_none(&flaws);
}

#[tokio::test]
async fn an_id_that_is_none_or_unknown_is_refused() {
    let furnished = Furnished::new().await;
    let mut flaws = Vec::new();
    let (document, before) = (furnished.document().await, furnished.everything().await);
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
            let path = furnished.path(&Operation {
                path: operation.path.replace(first, id),
                ..operation.clone()
            });
            let answer = furnished
                .gateway
                .send(operation.method(), &path, body.clone())
                .await;
            flaws.extend(flaw(&answer, operation, id));
        }
    }
    assert_none(&flaws);
    assert_eq!(furnished.everything().await, before);
}

#[tokio::test]
async fn a_checkpoint_in_the_path_is_a_uuid() {
    let furnished = Furnished::new().await;
    for id in ["x", "true", "-1", "%00"] {
        let answer = furnished
            .gateway
            .get(&format!("/threads/{}/state/{id}", furnished.thread))
            .await;
        assert_eq!(
            (answer.code(), answer.json()),
            (
                422,
                json!({ "detail": "Invalid checkpoint ID: must be a UUID" })
            ),
            "{id}"
        );
    }
}

#[tokio::test]
async fn a_parameter_of_the_wrong_type_or_range_is_refused() {
    let furnished = Furnished::new().await;
    let mut flaws = Vec::new();
    let (document, before) = (furnished.document().await, furnished.everything().await);
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
                let path = format!("{}?key=k&{name}={value}", furnished.path(&operation));
                let body = operation
                    .body
                    .as_ref()
                    .map(|schema| document.sample(schema));
                let answer = furnished
                    .gateway
                    .send(operation.method(), &path, body)
                    .await;
                flaws.extend(flaw(&answer, &operation, &format!("{name}={value}")));
                tried += 1;
            }
        }
    }
    assert!(tried > 30, "{tried}");
    assert_none(&flaws);
    assert_eq!(furnished.everything().await, before);
}

#[tokio::test]
async fn every_word_that_the_document_offers_is_understood() {
    let furnished = Furnished::new().await;
    let (document, mut tried) = (furnished.document().await, 0);
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
                let answer = furnished
                    .gateway
                    .send(operation.method(), &furnished.path(&operation), Some(body))
                    .await;
                let text = answer.text().chars().take(200).collect::<String>();
                assert!(
                    answer.code() != 422 && answer.code() < 500,
                    "{} with {name}: {word}: {} {text}",
                    operation.id,
                    answer.code()
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 150, "{tried}");
}

/// Values of every type, some of them out of every range.
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
