//! Bodies that violate their schema.

use serde_json::{Map, Value, json};

use super::{Fixture, assert_none, violation};

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
