//! Lists, drawings, descriptions and validation.

use serde_json::{Value, json};

use super::{created, send};
use crate::support::{FLOW, Gateway};

#[tokio::test]
async fn flows_are_listed_with_those_of_the_system_in_pages() {
    let gateway = Gateway::new();
    created(&gateway).await;
    let ids = |page: &Value| -> Vec<String> {
        let flows = page.as_array().unwrap().iter();
        flows
            .map(|flow| flow["flowId"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = gateway.get("/api/flows").await;
    assert_eq!(ids(&all.json()), ["say-hello", "shipped"]);
    assert_eq!(all.header("x-pagination-total"), "2");
    let first = gateway.get("/flows?limit=1").await;
    assert_eq!(ids(&first.json()), ["say-hello"]);
    assert_eq!(first.header("x-pagination-next"), "1");
    assert_eq!(
        ids(&gateway.get("/flows?limit=1&offset=1").await.json()),
        ["shipped"]
    );
    assert_eq!(gateway.get("/flows?limit=0").await.code(), 422);
}

#[tokio::test]
async fn flow_is_drawn_as_json_and_mermaid() {
    let gateway = Gateway::new();
    let json = gateway.get("/api/flows/shipped/graph").await.json();
    assert_eq!(
        (&json["start"], &json["ends"]),
        (&json!("greet"), &json!(["greet"]))
    );
    assert_eq!(json["nodes"][0]["agentId"], "a");
    let mermaid = gateway.get("/api/flows/shipped/graph?format=mermaid").await;
    assert!(mermaid.header("content-type").starts_with("text/plain"));
    assert!(
        mermaid.text().starts_with("flowchart"),
        "{}",
        mermaid.text()
    );
    assert_eq!(
        gateway
            .get("/api/flows/shipped/graph?format=svg")
            .await
            .code(),
        422
    );
    assert_eq!(gateway.get("/api/flows/other/graph").await.code(), 404);
}

#[tokio::test]
async fn validation_reports_errors_and_warnings_with_200() {
    let gateway = Gateway::new();
    let valid = gateway
        .post("/api/flows/validate", json!({"content": FLOW}))
        .await;
    assert_eq!((valid.code(), &valid.json()["valid"]), (200, &json!(true)));
    let broken = send(&gateway, "POST", "/flows/validate", "meta: [").await;
    let result = broken.json();
    assert_eq!((broken.code(), &result["valid"]), (200, &json!(false)));
    assert_eq!(result["errors"][0]["code"], "schema_invalid");
    let unknown = FLOW.replace("agent.main", "magic.wand");
    let code = async |query: &str| {
        let path = format!("/flows/validate{query}");
        send(&gateway, "POST", &path, &unknown).await.json()
    };
    assert_eq!(code("").await["errors"][0]["code"], "unknown_node_kind");
    assert_eq!(code("?strict=false").await["valid"], true);
}

#[tokio::test]
async fn parts_of_flows_are_described() {
    let gateway = Gateway::new();
    let schema = gateway.get("/api/flows/schema").await.json();
    assert!(schema["properties"]["graph"].is_object(), "{schema}");
    let adapters = gateway.get("/api/flows/adapters").await.json();
    assert_eq!(adapters[0]["adapterKind"], "fake");
    let kinds = gateway.get("/api/flows/node-kinds").await.json();
    let kinds: Vec<&Value> = kinds
        .as_array()
        .unwrap()
        .iter()
        .map(|k| &k["kind"])
        .collect();
    assert!(kinds.contains(&&json!("control.plan-loop")), "{kinds:?}");
    let assets = gateway.get("/api/flows/assets").await.json();
    assert_eq!(assets["agents"], json!([]));
}

#[tokio::test]
async fn reload_reports_broken_system_flows() {
    let gateway = Gateway::new();
    let state = gateway.send("POST", "/api/flows/assets/reload", None).await;
    assert_eq!(state.code(), 200);
    assert_eq!(state.json()["flows"], json!(["shipped"]));
    assert_eq!(state.json()["problems"][0]["file"], "broken.yaml");
}
