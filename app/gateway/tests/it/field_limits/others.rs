//! Configurations, items and short texts.

use serde_json::{Value, json};

use super::{CONFIG, ITEM, assert_refused, lead_thread, sized};
use crate::support::{Gateway, saying_with};

#[tokio::test]
async fn config_and_context_are_limited() {
    let gateway = Gateway::new();
    let thread = lead_thread(&gateway).await;
    let run = format!("/threads/{thread}/runs/wait");
    for field in ["config", "context"] {
        let fill = |size| match field {
            "config" => {
                let fixed = json!({ "configurable": {} }).to_string().len() - 2;
                json!({ "configurable": sized(size - fixed) })
            }
            _ => sized(size),
        };
        let with_run = |size| saying_with("say x", json!({ field: fill(size) }));
        let with_graph = |size| json!({ "graph_id": "lead_agent", field: fill(size) });
        let bodies: [(&str, &dyn Fn(usize) -> Value); 4] = [
            (&run, &with_run),
            ("/runs/wait", &with_run),
            ("/api/runs/stream", &with_run),
            ("/assistants", &with_graph),
        ];
        for (path, body) in bodies {
            let accepted = gateway.post(path, body(CONFIG)).await;
            assert_eq!(accepted.code(), 200, "{path} {field}");
            let refused = gateway.post(path, body(CONFIG + 1)).await;
            assert_refused(&refused, field, CONFIG);
        }
    }
}

#[tokio::test]
async fn item_is_limited_and_a_refused_one_replaces_nothing() {
    let gateway = Gateway::new();
    let put = async |value: Value| {
        let body = json!({ "namespace": ["a"], "key": "k", "value": value });
        gateway.send("PUT", "/store/items", Some(body)).await
    };
    assert_eq!(put(sized(ITEM)).await.code(), 204);
    assert_eq!(put(json!({ "small": 1 })).await.code(), 204);
    assert_refused(&put(sized(ITEM + 1)).await, "value", ITEM);
    let item = gateway.get("/store/items?namespace=a&key=k").await.json();
    assert_eq!(item["value"], json!({ "small": 1 }));
}

#[tokio::test]
async fn long_text_is_422_with_its_location() {
    let gateway = Gateway::new();
    let thread = lead_thread(&gateway).await;
    let assistant = |name: usize| json!({ "graph_id": "lead_agent", "name": "n".repeat(name) });
    assert_eq!(
        gateway.post("/assistants", assistant(1_024)).await.code(),
        200
    );
    let refused = gateway.post("/assistants", assistant(1_025)).await;
    assert_eq!(refused.code(), 422);
    let detail = refused.json()["detail"].to_string();
    assert!(
        detail.contains("name is limited to 1024 bytes, this one has 1025"),
        "{detail}"
    );
    let ran = gateway
        .post(
            &format!("/api/threads/{thread}/runs/wait"),
            saying_with("say x", json!({})),
        )
        .await;
    assert_eq!(ran.code(), 200);
    let runs = gateway.get(&format!("/threads/{thread}/runs")).await.json();
    let run = runs[0]["run_id"].as_str().expect("a run");
    let path = format!("/api/threads/{thread}/runs/{run}/feedback");
    let feedback = |length: usize| json!({ "rating": 1, "comment": "c".repeat(length) });
    assert_eq!(gateway.post(&path, feedback(16_384)).await.code(), 200);
    let refused = gateway.post(&path, feedback(16_385)).await;
    assert_eq!(refused.code(), 422);
    assert_eq!(
        refused.json()["detail"][0]["loc"],
        json!(["body", "comment"])
    );
}
