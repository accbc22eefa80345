//! Assistants of graphs: updates, reserved ids, graph and schemas.

use serde_json::json;

use super::default_id;
use crate::support::{Gateway, saying_with};

#[tokio::test]
async fn graph_assistant_is_updated_and_restored() {
    let gateway = Gateway::new();
    let id = default_id(&gateway).await;
    let path = format!("/assistants/{id}");
    let unchanged = gateway.get(&path).await.json();
    assert_eq!(
        gateway
            .post(&format!("{path}/latest"), json!({ "version": 1 }))
            .await
            .json(),
        unchanged
    );
    assert_eq!(
        gateway
            .post(&format!("{path}/latest"), json!({ "version": 2 }))
            .await
            .code(),
        404
    );
    let patch =
        json!({ "name": "mine", "metadata": { "team": "x" }, "context": { "model_name": "nope" } });
    let patched = gateway.send("PATCH", &path, Some(patch)).await.json();
    assert_eq!(
        (
            &patched["assistant_id"],
            &patched["version"],
            &patched["name"]
        ),
        (&json!(id), &json!(2), &json!("mine"))
    );
    assert_eq!(
        (&patched["created_at"], &patched["metadata"]),
        (
            &unchanged["created_at"],
            &json!({ "created_by": "system", "team": "x" })
        )
    );
    assert_eq!(gateway.get(&path).await.json(), patched);
    assert_eq!(
        gateway.post("/assistants/search", json!({})).await.json(),
        json!([patched])
    );
    assert_eq!(
        gateway
            .post("/assistants/count", json!({ "name": "lead" }))
            .await
            .json(),
        json!(0)
    );
    let versions = gateway
        .post(&format!("{path}/versions"), json!({}))
        .await
        .json();
    let listed: Vec<_> = versions
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (&one["assistant_id"], &one["version"]))
        .collect();
    assert_eq!(listed, [(&json!(id), &json!(2)), (&json!(id), &json!(1))]);
    // The name of a graph selects its assistant; this gateway does not have the model.
    let thread = gateway.thread().await;
    for named in ["lead_agent", &id] {
        let run = gateway
            .post(
                &format!("/threads/{thread}/runs/wait"),
                saying_with("say a", json!({ "assistant_id": named })),
            )
            .await;
        assert_eq!(run.code(), 400, "{}", run.text());
    }
    let back = gateway
        .post(&format!("{path}/latest"), json!({ "version": 1 }))
        .await
        .json();
    assert_eq!(
        (&back["name"], &back["version"], &back["context"]),
        (&unchanged["name"], &json!(1), &json!({}))
    );
    let run = gateway
        .post(
            &format!("/threads/{thread}/runs"),
            saying_with("say a", json!({})),
        )
        .await
        .json();
    assert_eq!(
        (&run["assistant_id"], &run["metadata"]["created_by"]),
        (&json!(id), &json!("system"))
    );
    // DeerFlow shows the unchanged assistant.
    gateway
        .post(&format!("{path}/latest"), json!({ "version": 2 }))
        .await;
    for name in ["lead_agent", &id] {
        assert_eq!(
            gateway.get(&format!("/api/assistants/{name}")).await.json()["name"],
            "lead_agent"
        );
    }
    assert_eq!(gateway.send("DELETE", &path, None).await.code(), 403);
}

#[tokio::test]
async fn id_of_a_graph_assistant_is_reserved() {
    let gateway = Gateway::new();
    let id = default_id(&gateway).await;
    assert_eq!(
        gateway
            .post(
                "/assistants",
                json!({ "graph_id": "lead_agent", "assistant_id": id })
            )
            .await
            .code(),
        409
    );
    let retained = gateway
        .post(
            "/assistants",
            json!({ "graph_id": "lead_agent", "assistant_id": id, "if_exists": "do_nothing" }),
        )
        .await;
    assert_eq!(
        (retained.code(), &retained.json()["metadata"]["created_by"]),
        (200, &json!("system"))
    );
    // Ids for changes of graph assistants are also reserved, for all users.
    let reserved = "9c909fe5-1423-8566-9403-37f8a945b29b";
    for if_exists in ["raise", "do_nothing"] {
        let body =
            json!({ "graph_id": "lead_agent", "assistant_id": reserved, "if_exists": if_exists });
        assert_eq!(gateway.post("/assistants", body).await.code(), 409);
    }
    assert_eq!(
        gateway.get(&format!("/assistants/{reserved}")).await.code(),
        404
    );
}

#[tokio::test]
async fn graph_and_schemas_are_returned() {
    let gateway = Gateway::new();
    let id = default_id(&gateway).await;
    for name in [id.as_str(), "lead_agent"] {
        let graph = gateway
            .get(&format!("/assistants/{name}/graph?xray=2"))
            .await
            .json();
        assert_eq!(graph["nodes"][0]["id"], "__start__");
        assert_eq!(
            graph["edges"][0],
            json!({ "source": "__start__", "target": "model" })
        );
    }
    for bad in ["bad", "0", "-1"] {
        let refused = gateway
            .get(&format!("/assistants/{id}/graph?xray={bad}"))
            .await;
        assert_eq!(
            (refused.code(), refused.json()),
            (422, json!({ "detail": "Invalid xray value" }))
        );
    }
    let schemas = gateway
        .get(&format!("/assistants/{id}/schemas"))
        .await
        .json();
    assert!(schemas["input_schema"]["properties"]["messages"]["items"]["oneOf"].is_array());
    assert_eq!(
        gateway.get("/assistants/lead_agent/schemas").await.code(),
        422
    );
    for path in ["subgraphs", "subgraphs/tools?recurse=true"] {
        assert_eq!(
            gateway
                .get(&format!("/assistants/{id}/{path}"))
                .await
                .json(),
            json!({})
        );
    }
}

#[tokio::test]
async fn run_of_one_assistant_reads_no_other() {
    let gateway = Gateway::new();
    let id = default_id(&gateway).await;
    let before = gateway.agents.list_reads();
    for prefix in ["", "/api"] {
        for assistant in ["lead_agent", id.as_str()] {
            let body = saying_with("say a", json!({ "assistant_id": assistant }));
            let ended = gateway.post(&format!("{prefix}/runs/wait"), body).await;
            assert_eq!(ended.code(), 200, "{prefix} {assistant}: {}", ended.text());
        }
    }
    let read = gateway.get(&format!("/assistants/{id}")).await;
    assert_eq!(read.code(), 200);
    assert_eq!(gateway.agents.list_reads(), before);
}

#[tokio::test]
async fn invalid_assistant_is_refused_with_all_findings() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    for prefix in ["", "/api"] {
        let body = saying_with("a", json!({ "context": { "model_name": "invalid" } }));
        let runs = format!("{prefix}/threads/{thread}/runs");
        let refused = gateway.post(&runs, body).await;
        assert_eq!(
            (refused.code(), refused.json()),
            (422, json!({ "detail": [{ "code": "a" }, { "code": "b" }] }))
        );
        assert_eq!(gateway.get(&runs).await.json(), json!([]));
    }
}
