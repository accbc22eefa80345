//! Assistants that users create: creation, versions, search, settings of their runs, invalid bodies.

use serde_json::{Value, json};

use super::{GONE, make};
use crate::support::{Gateway, saying_with};

#[tokio::test]
async fn assistant_is_created_updated_and_restored() {
    let gateway = Gateway::new();
    let body = json!({ "graph_id": "lead_agent", "name": "mine", "description": "d", "metadata": { "k": "v", "run_id": "x" },
        "config": { "recursion_limit": 7, "tags": ["t1"] }, "context": { "model_name": "other", "user_id": "forged" } });
    let made = make(&gateway, body).await;
    let id = made["assistant_id"].as_str().expect("an id");
    assert_eq!(
        made["config"],
        json!({ "recursion_limit": 7, "tags": ["t1"], "configurable": { "model_name": "other" } })
    );
    assert_eq!(
        (&made["context"], &made["metadata"], &made["version"]),
        (
            &json!({ "model_name": "other" }),
            &json!({ "k": "v" }),
            &json!(1)
        )
    );
    let path = format!("/assistants/{id}");
    assert_eq!(gateway.get(&path).await.json(), made);

    let patched = gateway
        .send(
            "PATCH",
            &path,
            Some(json!({ "name": "renamed", "metadata": { "z": 1 } })),
        )
        .await
        .json();
    assert_eq!(
        (&patched["name"], &patched["version"], &patched["config"]),
        (&json!("renamed"), &json!(2), &made["config"])
    );
    assert_eq!(patched["metadata"], json!({ "k": "v", "z": 1 }));
    let versions = gateway
        .post(&format!("{path}/versions"), json!({}))
        .await
        .json();
    assert_eq!(
        (
            &versions[0]["version"],
            &versions[1]["name"],
            versions[2].is_null()
        ),
        (&json!(2), &json!("mine"), true)
    );
    let back = gateway
        .post(&format!("{path}/latest"), json!({ "version": 1 }))
        .await
        .json();
    assert_eq!(
        (&back["name"], &back["version"]),
        (&json!("mine"), &json!(1))
    );
    assert_eq!(gateway.get(&path).await.json()["name"], "mine");

    let deleted = gateway.send("DELETE", &path, None).await;
    assert_eq!((deleted.code(), deleted.body.len()), (204, 0));
    assert_eq!(gateway.get(&path).await.code(), 404);
    let again = gateway.send("DELETE", &path, None).await;
    assert_eq!(
        (again.code(), again.json()),
        (
            404,
            json!({ "detail": format!("Assistant with ID {id} not found") })
        )
    );
}

#[tokio::test]
async fn search_merges_graph_and_user_assistants_in_order() {
    let gateway = Gateway::new();
    for name in ["b", "a", "zebra"] {
        make(&gateway, json!({ "graph_id": "lead_agent", "name": name, "metadata": { "of": { "team": name } } })).await;
    }
    let names = async |body: Value| -> Vec<Value> {
        let found = gateway.post("/assistants/search", body).await.json();
        found
            .as_array()
            .expect("a list")
            .iter()
            .map(|found| found["name"].clone())
            .collect()
    };
    assert_eq!(
        names(json!({ "sort_by": "name", "sort_order": "asc" })).await,
        ["a", "b", "lead_agent", "zebra"]
    );
    assert_eq!(
        names(json!({ "sort_by": "name", "sort_order": "asc", "limit": 2, "offset": 1 })).await,
        ["b", "lead_agent"]
    );
    assert_eq!(names(json!({ "name": "EB" })).await, ["zebra"]);
    assert_eq!(
        names(json!({ "metadata": { "of": { "team": "a" } } })).await,
        ["a"]
    );
    assert_eq!(
        names(json!({ "metadata": { "created_by": "system" } })).await,
        ["lead_agent"]
    );
    assert_eq!(
        gateway
            .post("/assistants/count", json!({ "graph_id": "lead_agent" }))
            .await
            .json(),
        json!(4)
    );
    let page = gateway
        .post(
            "/assistants/search",
            json!({ "limit": 2, "select": ["name"] }),
        )
        .await;
    assert_eq!(
        (
            page.header("x-pagination-total"),
            page.header("x-pagination-next")
        ),
        ("3", "2")
    );
    assert_eq!(page.json()[0], json!({ "name": "zebra" }));
    let whole = gateway
        .post("/assistants/search", json!({ "limit": 4 }))
        .await;
    assert_eq!(
        (
            whole.header("x-pagination-total"),
            whole.header("x-pagination-next")
        ),
        ("4", "")
    );
    let deerflow = gateway
        .post("/api/assistants/search", json!({}))
        .await
        .json();
    assert_eq!(
        (
            deerflow.as_array().expect("a list").len(),
            &deerflow[0]["assistant_id"]
        ),
        (1, &json!("lead_agent"))
    );
}

#[tokio::test]
async fn run_uses_the_settings_of_its_assistant() {
    let gateway = Gateway::new();
    let made = make(&gateway, json!({ "graph_id": "lead_agent", "metadata": { "team": "x" }, "config": { "tags": ["t"] } })).await;
    let id = &made["assistant_id"];
    let thread = gateway.thread().await;
    let body = saying_with(
        "say hi",
        json!({ "assistant_id": id, "metadata": { "mine": 1 } }),
    );
    let run = gateway.post(&format!("/threads/{thread}/runs"), body).await;
    assert_eq!(run.code(), 200, "{}", run.text());
    let run = run.json();
    assert_eq!(
        (
            &run["assistant_id"],
            &run["metadata"]["assistant_id"],
            &run["metadata"]["graph_id"]
        ),
        (id, id, &json!("lead_agent"))
    );
    assert_eq!(
        (&run["metadata"]["team"], &run["metadata"]["mine"]),
        (&json!("x"), &json!(1))
    );
    assert_eq!(run["kwargs"]["config"]["configurable"]["assistant_id"], *id);
    // Its context selects a model that this gateway does not have.
    let other = make(
        &gateway,
        json!({ "graph_id": "lead_agent", "context": { "model_name": "nope" } }),
    )
    .await;
    let body = saying_with("say hi", json!({ "assistant_id": other["assistant_id"] }));
    let refused = gateway
        .post(
            &format!("/threads/{}/runs/wait", gateway.thread().await),
            body,
        )
        .await;
    assert_eq!(refused.code(), 400, "{}", refused.text());
}

#[tokio::test]
async fn invalid_assistant_is_rejected_with_a_text() {
    let gateway = Gateway::new();
    let made = make(&gateway, json!({ "graph_id": "lead_agent" })).await;
    let own = format!(
        "/assistants/{}",
        made["assistant_id"].as_str().expect("an id")
    );
    let cases = [
        ("POST", "/assistants", json!({}), 422),
        ("POST", "/assistants", json!([]), 422),
        ("POST", "/assistants", json!({ "graph_id": 1 }), 422),
        ("POST", "/assistants", json!({ "graph_id": "nope" }), 404),
        (
            "POST",
            "/assistants",
            json!({ "graph_id": "lead_agent", "assistant_id": "nope" }),
            422,
        ),
        (
            "POST",
            "/assistants",
            json!({ "graph_id": "lead_agent", "if_exists": "maybe" }),
            422,
        ),
        (
            "POST",
            "/assistants",
            json!({ "graph_id": "lead_agent", "metadata": [] }),
            422,
        ),
        (
            "POST",
            "/assistants",
            json!({ "graph_id": "lead_agent", "name": 5 }),
            422,
        ),
        (
            "POST",
            "/assistants",
            json!({ "graph_id": "lead_agent", "config": { "tags": "x" } }),
            422,
        ),
        (
            "POST",
            "/assistants",
            json!({ "graph_id": "lead_agent", "config": { "recursion_limit": 0 } }),
            422,
        ),
        (
            "POST",
            "/assistants",
            json!({ "graph_id": "lead_agent", "config": { "configurable": 1 } }),
            422,
        ),
        (
            "POST",
            "/assistants",
            json!({ "graph_id": "lead_agent", "config": { "configurable": { "a": 1 } }, "context": { "b": 2 } }),
            400,
        ),
        ("POST", "/assistants/search", json!({ "limit": 0 }), 422),
        ("POST", "/assistants/search", json!({ "offset": -1 }), 422),
        (
            "POST",
            "/assistants/search",
            json!({ "sort_by": "nope" }),
            422,
        ),
        (
            "POST",
            "/assistants/search",
            json!({ "select": ["nope"] }),
            422,
        ),
        (
            "POST",
            "/assistants/search",
            json!({ "graph_id": "nope" }),
            404,
        ),
        ("POST", "/assistants/count", json!({ "metadata": 1 }), 422),
        ("PATCH", own.as_str(), json!({ "graph_id": "nope" }), 404),
        ("PATCH", own.as_str(), json!({ "context": [] }), 422),
        ("PATCH", "/assistants/nope", json!({}), 422),
        ("POST", &format!("{own}/latest"), json!({}), 422),
        (
            "POST",
            &format!("{own}/latest"),
            json!({ "version": 9 }),
            404,
        ),
        (
            "POST",
            &format!("{own}/latest"),
            json!({ "version": "1" }),
            422,
        ),
        (
            "POST",
            &format!("{own}/versions"),
            json!({ "limit": 5000 }),
            422,
        ),
        (
            "DELETE",
            &format!("{own}?delete_threads=perhaps"),
            Value::Null,
            422,
        ),
        ("GET", &format!("/assistants/{GONE}"), Value::Null, 404),
        (
            "PATCH",
            &format!("/assistants/{GONE}"),
            json!({ "name": "x" }),
            404,
        ),
        (
            "POST",
            &format!("/assistants/{GONE}/versions"),
            json!({}),
            404,
        ),
    ];
    for (method, path, body, code) in cases {
        let response = gateway
            .send(
                method,
                path,
                Some(body.clone()).filter(|body| !body.is_null()),
            )
            .await;
        assert_eq!(
            response.code(),
            code,
            "{method} {path} {body}: {}",
            response.text()
        );
        assert!(
            response.json()["detail"].is_string(),
            "{method} {path} {body}"
        );
    }
    assert_eq!(gateway.get(&own).await.json(), made);
}
