//! `/api/memory`: the web UI's operations on user memory.

use serde_json::{Value, json};

use crate::support::Gateway;

async fn add(gateway: &Gateway, content: &str) -> Value {
    let response = gateway
        .post(
            "/api/memory/facts",
            json!({ "content": content, "category": "preference", "confidence": 0.9 }),
        )
        .await;
    assert_eq!(response.code(), 200, "{}", response.text());
    response.json()
}

#[tokio::test]
async fn empty_memory_has_all_fields() {
    let gateway = Gateway::new();
    let memory = gateway.get("/api/memory").await.json();
    let note = json!({ "summary": "", "updatedAt": "" });
    assert_eq!(
        memory["user"],
        json!({ "workContext": note, "personalContext": note, "topOfMind": note })
    );
    assert_eq!(
        memory["history"],
        json!({ "recentMonths": note, "earlierContext": note, "longTermBackground": note })
    );
    assert_eq!(
        (&memory["version"], &memory["facts"]),
        (&json!("1.0"), &json!([]))
    );
    assert_eq!(
        gateway.get("/api/memory/config").await.json()["manager_class"],
        "deermem"
    );
    assert_eq!(
        gateway.get("/api/memory/status").await.json()["data"],
        memory
    );
}

#[tokio::test]
async fn facts_are_added_corrected_and_removed() {
    let gateway = Gateway::new();
    let memory = add(&gateway, "Likes tea").await;
    let fact = &memory["facts"][0];
    assert_eq!(
        (&fact["content"], &fact["source"]),
        (&json!("Likes tea"), &json!("manual"))
    );
    assert!(
        fact.get("status").is_none() && fact.get("sourceError").is_none(),
        "missing fields are omitted: {fact}"
    );
    let path = format!("/api/memory/facts/{}", fact["id"].as_str().unwrap());
    let changed = gateway
        .send("PATCH", &path, Some(json!({ "content": "Likes coffee" })))
        .await
        .json();
    assert_eq!(
        (
            &changed["facts"][0]["content"],
            &changed["facts"][0]["category"]
        ),
        (&json!("Likes coffee"), &json!("preference"))
    );
    assert_eq!(
        gateway
            .post("/api/memory/facts", json!({ "content": "likes  COFFEE" }))
            .await
            .code(),
        409
    );
    assert_eq!(
        gateway.send("DELETE", &path, None).await.json()["facts"],
        json!([])
    );
    let gone = gateway.send("DELETE", &path, None).await;
    assert_eq!(
        (
            gone.code(),
            gone.json()["detail"]
                .as_str()
                .unwrap()
                .starts_with("Memory fact '")
        ),
        (404, true)
    );
}

#[tokio::test]
async fn export_is_imported_and_memory_is_cleared() {
    let gateway = Gateway::new();
    add(&gateway, "Likes tea").await;
    let mut exported = gateway.get("/api/memory/export").await.json();
    assert_eq!(
        gateway.send("DELETE", "/api/memory", None).await.json()["facts"],
        json!([])
    );
    exported["facts"][0]["topics"] = json!(["drinks"]);
    exported["user"]["workContext"] = json!({ "summary": "A cook" });
    let imported = gateway
        .post("/api/memory/import", exported.clone())
        .await
        .json();
    assert_eq!(
        (
            &imported["facts"],
            &imported["user"]["workContext"]["summary"]
        ),
        (&exported["facts"], &json!("A cook"))
    );
    assert_eq!(
        gateway.post("/api/memory/reload", json!({})).await.json(),
        imported
    );
    let duplicates = json!({ "facts": [{ "content": "a" }, { "content": "b" }] });
    let duplicates = gateway.post("/api/memory/import", duplicates).await.json();
    assert_ne!(duplicates["facts"][0]["id"], duplicates["facts"][1]["id"]);
}

/// Asserts the conditions that DeerFlow's web UI checks before it imports a file.
fn assert_importable_in_the_ui(memory: &Value) {
    let texts = |value: &Value, keys: &[&str]| keys.iter().all(|key| value[key].is_string());
    assert!(texts(memory, &["version", "lastUpdated"]), "{memory}");
    for note in ["workContext", "personalContext", "topOfMind"] {
        assert!(
            texts(&memory["user"][note], &["summary", "updatedAt"]),
            "{memory}"
        );
    }
    for note in ["recentMonths", "earlierContext", "longTermBackground"] {
        assert!(
            texts(&memory["history"][note], &["summary", "updatedAt"]),
            "{memory}"
        );
    }
    for fact in memory["facts"].as_array().expect("a list") {
        assert!(
            texts(fact, &["id", "content", "category", "createdAt", "source"])
                && fact["confidence"].is_number(),
            "{fact}"
        );
    }
}

#[tokio::test]
async fn export_passes_the_web_ui_check_and_imports_unchanged() {
    let gateway = Gateway::new();
    add(&gateway, "Likes tea").await;
    let facts = json!({ "facts": [
        { "content": "told", "source": { "type": "manual" } },
        { "content": "learned", "source": { "type": "conversation", "threadId": "t1" } },
        { "content": "of another version", "source": "t2" },
        { "content": "of nobody" },
    ] });
    assert_eq!(gateway.post("/api/memory/import", facts).await.code(), 200);
    let exported = gateway.get("/api/memory/export").await.json();
    assert_importable_in_the_ui(&exported);
    let sources: Vec<&str> = exported["facts"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|fact| fact["source"].as_str())
        .collect();
    assert_eq!(sources, ["manual", "t1", "t2", "unknown"]);
    assert_eq!(
        gateway.send("DELETE", "/api/memory", None).await.code(),
        200
    );
    let imported = gateway
        .post("/api/memory/import", exported.clone())
        .await
        .json();
    assert_importable_in_the_ui(&imported);
    assert_eq!(
        (&imported["facts"], &imported["user"]),
        (&exported["facts"], &exported["user"])
    );
}

#[tokio::test]
async fn invalid_memory_is_rejected_without_side_effects() {
    let gateway = Gateway::new();
    let held = add(&gateway, "Likes tea").await;
    let fact = format!(
        "/api/memory/facts/{}",
        held["facts"][0]["id"].as_str().unwrap()
    );
    for (method, path, body) in [
        ("POST", "/api/memory/facts", json!({})),
        ("POST", "/api/memory/facts", json!({ "content": " " })),
        (
            "POST",
            "/api/memory/facts",
            json!({ "content": "x", "confidence": 1.5 }),
        ),
        (
            "POST",
            "/api/memory/facts",
            json!({ "content": "x", "category": 3 }),
        ),
        ("PATCH", &*fact, json!({ "content": "x".repeat(20_000) })),
        ("POST", "/api/memory/import", json!({ "facts": "x" })),
        (
            "POST",
            "/api/memory/import",
            json!({ "facts": [{ "content": "" }] }),
        ),
        (
            "POST",
            "/api/memory/import",
            json!({ "facts": [{ "content": "x", "confidence": 7 }] }),
        ),
        (
            "POST",
            "/api/memory/import",
            json!({ "user": { "workContext": { "summary": "x".repeat(30_000) } } }),
        ),
        (
            "POST",
            "/api/memory/import",
            json!({ "user": { "workContext": { "updatedAt": "x".repeat(300) } } }),
        ),
        (
            "POST",
            "/api/memory/import",
            json!({ "version": "x".repeat(300) }),
        ),
        (
            "POST",
            "/api/memory/import",
            json!({ "lastUpdated": "x".repeat(300) }),
        ),
        (
            "POST",
            "/api/memory/import",
            json!({ "facts": [{ "content": "x", "sourceError": "x".repeat(20_000) }] }),
        ),
        (
            "POST",
            "/api/memory/import",
            json!({ "facts": [{ "content": "x", "source": { "type": "x".repeat(20_000) } }] }),
        ),
        (
            "POST",
            "/api/memory/import",
            json!({ "facts": [{ "content": "x", "topics": ["x".repeat(20_000)] }] }),
        ),
    ]
    .into_iter()
    .chain(
        ["id", "category", "createdAt", "status", "updatedAt"].map(|label| {
            (
                "POST",
                "/api/memory/import",
                json!({ "facts": [{ "content": "x", label: "x".repeat(300) }] }),
            )
        }),
    ) {
        assert_eq!(
            gateway.send(method, path, Some(body.clone())).await.code(),
            422,
            "{method} {path} {body}"
        );
    }
    assert_eq!(gateway.get("/api/memory").await.json(), held);
}
