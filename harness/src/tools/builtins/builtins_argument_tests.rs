//! Tests of wrong, missing and unusual arguments.

use super::*;

#[tokio::test]
async fn wrong_arguments_name_the_field_and_the_tool() {
    let error = fixture()
        .call("read_file", json!({ "path": 7 }))
        .await
        .unwrap_err();
    assert!(error.contains("read_file at path"), "{error}");
    let error = fixture()
        .call(
            "write_file",
            json!({ "path": "/mnt/user-data/workspace/a" }),
        )
        .await
        .unwrap_err();
    assert!(error.contains("content"), "{error}");
}

#[tokio::test]
async fn missing_text_is_an_error_and_empty_text_changes_nothing() {
    let fixture = fixture();
    let path = "/mnt/user-data/workspace/a";
    fixture
        .text("write_file", json!({ "path": path, "content": "abc" }))
        .await;
    assert!(
        fixture
            .call(
                "str_replace",
                json!({ "path": path, "old_str": "z", "new_str": "y" })
            )
            .await
            .unwrap_err()
            .starts_with("Error:")
    );
    assert_eq!(
        fixture
            .text(
                "str_replace",
                json!({ "path": path, "old_str": "", "new_str": "y" })
            )
            .await,
        "OK"
    );
    assert_eq!(
        fixture.text("read_file", json!({ "path": path })).await,
        "abc"
    );
}

#[tokio::test]
async fn empty_text_in_missing_file_is_an_error() {
    let fixture = fixture();
    for (path, why) in [
        ("/mnt/user-data/workspace/missing", "missing"),
        ("/mnt/user-data/workspace", "workspace"),
    ] {
        for new in ["y", ""] {
            let error = fixture
                .call(
                    "str_replace",
                    json!({ "path": path, "old_str": "", "new_str": new }),
                )
                .await
                .unwrap_err();
            assert!(
                error.starts_with("Error:") && error.contains(why),
                "{path}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn slow_pattern_is_rejected_immediately() {
    let pattern = format!("(?i){}", r"[\p{L}\p{N}]?".repeat(10_000));
    let error = fixture()
        .call(
            "grep",
            json!({ "pattern": pattern, "path": "/mnt/user-data/workspace" }),
        )
        .await
        .unwrap_err();
    assert!(error.contains("longer than 1024 bytes"), "{error}");
}

#[test]
fn every_parameter_has_a_description() {
    let fixture = fixture();
    for schema in fixture.tools.schemas().iter() {
        let fields = schema.parameters["properties"].as_object().unwrap();
        assert!(
            !fields.is_empty()
                && fields
                    .values()
                    .all(|field| field["description"].is_string()),
            "{}",
            schema.name
        );
        assert!(!schema.description.is_empty());
    }
    let write = fixture.tools.get("write_file").unwrap().schema();
    assert_eq!(write.parameters["required"], json!(["path", "content"]));
}
