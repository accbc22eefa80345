//! The document is consistent, and the page is self-contained.

use std::collections::BTreeSet;

use super::*;

/// Returns every name that a value refers to.
fn references(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            let name = map
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|path| path.strip_prefix("#/components/schemas/"));
            names.extend(name.map(str::to_owned));
            map.values().for_each(|value| references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, names)),
        _ => {}
    }
}

fn documents() -> [Value; 2] {
    let [platform, deerflow] = crate::http::router::described().map(|routes| routes.build());
    [
        assemble_platform(&platform).expect("a document"),
        assemble_both(&platform, &deerflow).expect("a document"),
    ]
}

#[test]
fn references_and_schemas_match() {
    for document in documents() {
        let mut used = BTreeSet::new();
        references(&document, &mut used);
        let schemas = document["components"]["schemas"]
            .as_object()
            .expect("schemas");
        assert_eq!(used, schemas.keys().cloned().collect());
    }
}

#[test]
fn operations_have_a_unique_id_a_group_and_a_response() {
    for document in documents() {
        let tags = document["tags"].as_array().expect("tags");
        let known: BTreeSet<&str> = tags
            .iter()
            .map(|tag| tag["name"].as_str().expect("a name"))
            .collect();
        let mut ids = BTreeSet::new();
        for (path, operations) in document["paths"].as_object().expect("paths") {
            for (method, operation) in operations.as_object().expect("operations") {
                let id = operation["operationId"].as_str().expect("an id");
                assert!(ids.insert(id), "{id} is duplicated");
                assert!(
                    operation["tags"][0]
                        .as_str()
                        .is_some_and(|tag| known.contains(tag)),
                    "{method} {path}"
                );
                let returns = operation["responses"].as_object().expect("answers");
                assert!(
                    returns
                        .keys()
                        .any(|status| status.starts_with(['1', '2', '3']) && status.len() == 3),
                    "{method} {path}"
                );
                let parameters = operation["parameters"].as_array().into_iter().flatten();
                let in_path = parameters.filter(|parameter| parameter["in"] == "path");
                let named: Vec<String> = in_path
                    .map(|parameter| format!("{{{}}}", parameter["name"].as_str().expect("a name")))
                    .collect();
                assert!(
                    named.len() == path.matches('{').count()
                        && named.iter().all(|name| path.contains(name)),
                    "{method} {path}"
                );
            }
        }
    }
}

#[test]
fn docs_page_is_self_contained() {
    let page = include_str!("../routes/docs/page.html");
    for elsewhere in [
        "http:",
        "https:",
        "src=",
        "@import",
        "url(",
        "innerHTML",
        "style=\"",
        "onclick",
    ] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    assert_eq!(
        (
            page.matches("<script").count(),
            page.matches("<style").count()
        ),
        (1, 1)
    );
    assert_eq!(page.matches("nonce=\"{nonce}\"").count(), 2);
}
