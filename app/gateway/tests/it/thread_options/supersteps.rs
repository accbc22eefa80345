//! First states of new threads.

use serde_json::{Value, json};

use super::GONE;
use crate::support::Gateway;

#[tokio::test]
async fn supersteps_create_the_first_state_or_no_thread() {
    let gateway = Gateway::new();
    let user_message = |text: &str| json!({ "messages": [{ "role": "user", "content": text }] });
    let steps = json!([{ "updates": [{ "values": user_message("one"), "as_node": "__input__" }] },
        { "updates": [{ "values": user_message("two"), "as_node": "__start__" }, { "values": { "title": "T" }, "as_node": "__start__" }] }]);
    let made = gateway
        .post(
            "/threads",
            json!({ "metadata": { "graph_id": "lead_agent" }, "supersteps": steps }),
        )
        .await;
    assert_eq!(made.code(), 200, "{}", made.text());
    let made = made.json();
    assert_eq!(
        (
            made["values"]["messages"].as_array().map(Vec::len),
            &made["values"]["title"]
        ),
        (Some(2), &json!("T"))
    );
    assert_eq!(made["status"], "interrupted");
    // Updates of one step create one state.
    let path = format!(
        "/threads/{}/history",
        made["thread_id"].as_str().expect("an id")
    );
    let history = gateway.post(&path, json!({ "limit": 10 })).await.json();
    let states: Vec<_> = history
        .as_array()
        .expect("a list")
        .iter()
        .map(|state| (&state["values"]["title"], &state["next"]))
        .collect();
    assert_eq!(
        states,
        [
            (&json!("T"), &json!(["model"])),
            (&Value::Null, &json!(["model"]))
        ]
    );
    assert_eq!(
        (
            &history[0]["metadata"]["step"],
            &history[0]["parent_checkpoint_id"]
        ),
        (&json!(0), &history[1]["checkpoint_id"])
    );
    let bad = json!([{ "updates": [{ "values": user_message("one"), "as_node": "__start__" }] }, { "updates": [{ "values": {}, "as_node": "nope" }] }]);
    let refused = gateway.post("/threads", json!({ "thread_id": GONE, "metadata": { "graph_id": "lead_agent" }, "supersteps": bad })).await;
    assert_eq!(refused.code(), 400, "{}", refused.text());
    assert_eq!(gateway.get(&format!("/threads/{GONE}")).await.code(), 404);
}

#[tokio::test]
async fn supersteps_accept_commands_of_nodes() {
    let gateway = Gateway::new();
    let user_message = json!({ "messages": [{ "role": "user", "content": "one" }] });
    let made = async |command: Value| {
        let steps = json!([{ "updates": [{ "values": user_message, "as_node": "__input__" }] },
            { "updates": [{ "values": { "title": "no" }, "command": command, "as_node": "model" }] }]);
        gateway.post("/threads", json!({ "thread_id": GONE, "metadata": { "graph_id": "lead_agent" }, "supersteps": steps })).await
    };
    for (command, title, next) in [
        (json!({ "update": { "title": "T" } }), json!("T"), json!([])),
        (
            json!({ "update": [["title", "T"]], "goto": "tools" }),
            json!("T"),
            json!(["tools"]),
        ),
        (
            json!({ "goto": ["model", "__end__", { "node": "model", "input": {} }, "model"] }),
            Value::Null,
            json!(["model", "model"]),
        ),
        (
            json!({ "resume": "means nothing here" }),
            Value::Null,
            json!([]),
        ),
        (json!({}), json!("no"), json!([])),
        (Value::Null, json!("no"), json!([])),
    ] {
        let response = made(command.clone()).await;
        assert_eq!(response.code(), 200, "{command}: {}", response.text());
        let state = gateway.get(&format!("/threads/{GONE}/state")).await.json();
        assert_eq!(
            (&state["values"]["title"], &state["next"]),
            (&title, &next),
            "{command}"
        );
        assert_eq!(
            gateway
                .send("DELETE", &format!("/threads/{GONE}"), None)
                .await
                .code(),
            204
        );
    }
    for (command, code) in [
        (json!({ "goto": "nowhere" }), 400),
        (json!({ "goto": "__start__" }), 400),
        (json!({ "goto": 5 }), 422),
        (json!({ "goto": [{ "input": {} }] }), 422),
        (json!({ "update": "x" }), 422),
        (json!({ "update": { "nope": 1 } }), 422),
        (json!("x"), 422),
    ] {
        let response = made(command.clone()).await;
        assert_eq!(response.code(), code, "{command}: {}", response.text());
        assert!(response.json()["detail"].is_string(), "{command}");
        assert_eq!(
            gateway.get(&format!("/threads/{GONE}")).await.code(),
            404,
            "{command}"
        );
    }
}
