//! Thread options of the platform's clients: time to live, first state, selected fields; and
//! invalid values.

use serde_json::{Value, json};

use crate::support::{Gateway, saying};

const GONE: &str = "9c909fe5-1423-4566-9403-37f8a945b29b";

#[tokio::test]
async fn thread_ttl_is_returned_only_if_requested() {
    let gateway = Gateway::new();
    let made = gateway
        .post(
            "/threads",
            json!({ "ttl": { "ttl": 5, "strategy": "delete" } }),
        )
        .await
        .json();
    let path = format!("/threads/{}", made["thread_id"].as_str().expect("an id"));
    assert_eq!(
        (made.get("ttl"), gateway.get(&path).await.json().get("ttl")),
        (None, None)
    );
    let ttl = gateway.get(&format!("{path}?include=ttl")).await.json()["ttl"].clone();
    assert_eq!(
        (
            &ttl["ttl_minutes"],
            &ttl["strategy"],
            ttl["expires_at"].is_string()
        ),
        (&json!(5.0), &json!("delete"), true)
    );
    gateway
        .send(
            "PATCH",
            &path,
            Some(json!({ "ttl": { "ttl": 60, "strategy": "keep_latest" } })),
        )
        .await;
    let ttl = gateway.get(&format!("{path}?include=ttl")).await.json()["ttl"].clone();
    assert_eq!(
        (&ttl["ttl_minutes"], &ttl["strategy"]),
        (&json!(60.0), &json!("keep_latest"))
    );
    let forever = gateway.thread().await;
    assert_eq!(
        gateway
            .get(&format!("/threads/{forever}?include=ttl"))
            .await
            .json()["ttl"],
        Value::Null
    );
}

#[tokio::test]
async fn run_fields_are_absent_before_the_first_run() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}");
    let before = gateway.get(&path).await.json();
    assert_eq!(
        (
            before.get("interrupts"),
            before.get("error"),
            &before["values"]
        ),
        (None, None, &Value::Null)
    );
    assert_eq!(
        (&before["config"], &before["state_updated_at"]),
        (&json!({}), &before["created_at"])
    );
    gateway
        .post(&format!("{path}/runs/wait"), saying("say a"))
        .await;
    let after = gateway.get(&path).await.json();
    assert_eq!(
        (&after["interrupts"], &after["error"], &after["config"]),
        (&json!({}), &Value::Null, &json!({ "configurable": {} }))
    );
    let found = gateway
        .post("/threads/search", json!({ "ids": [thread] }))
        .await
        .json();
    assert_eq!(found[0], after);
    gateway
        .post(&format!("{path}/runs/wait"), saying("fail boom"))
        .await;
    assert_eq!(
        gateway.get(&path).await.json()["error"],
        json!({ "error": "RuntimeError", "message": "boom" })
    );
}

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

#[tokio::test]
async fn values_are_extracted_from_each_listed_thread() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    gateway
        .post(&format!("/threads/{thread}/runs/wait"), saying("say hello"))
        .await;
    let body = json!({ "ids": [thread], "select": ["thread_id"],
        "extract": { "last": "values.messages[-1].content", "none": "metadata.x.y" } });
    let found = gateway.post("/threads/search", body).await.json();
    assert_eq!(
        found,
        json!([{ "thread_id": thread, "extracted": { "last": "hello", "none": null } }])
    );
}

#[tokio::test]
async fn threads_are_pruned_and_unknown_ones_are_not_copied() {
    let gateway = Gateway::new();
    let (first, second) = (gateway.thread().await, gateway.thread().await);
    let refused = gateway
        .post("/threads/prune", json!({ "thread_ids": [first, "nope"] }))
        .await;
    assert_eq!(
        (
            refused.code(),
            gateway.get(&format!("/threads/{first}")).await.code()
        ),
        (422, 200)
    );
    let kept = gateway
        .post(
            "/threads/prune",
            json!({ "thread_ids": [first, GONE], "strategy": "keep_latest" }),
        )
        .await;
    assert_eq!(
        (
            kept.json(),
            gateway.get(&format!("/threads/{first}")).await.code()
        ),
        (json!({ "pruned_count": 1 }), 200)
    );
    let pruned = gateway
        .post(
            "/threads/prune",
            json!({ "thread_ids": [first, second, GONE] }),
        )
        .await;
    assert_eq!(
        (
            pruned.json(),
            gateway.get(&format!("/threads/{first}")).await.code()
        ),
        (json!({ "pruned_count": 2 }), 404)
    );
    let copy = gateway
        .send("POST", &format!("/threads/{GONE}/copy"), None)
        .await;
    assert_eq!(
        (copy.code(), copy.json()),
        (409, json!({ "detail": "Conflict" }))
    );
    assert_eq!(
        gateway
            .send("POST", &format!("/api/threads/{GONE}/copy"), None)
            .await
            .code(),
        404
    );
}

#[tokio::test]
async fn invalid_thread_options_are_rejected_with_a_text() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let own = format!("/threads/{thread}");
    let many: serde_json::Map<String, Value> =
        (0..200).map(|n| (format!("k{n}"), json!(n))).collect();
    let cases = [
        ("POST", "/threads", json!([])),
        ("POST", "/threads", json!("x")),
        ("POST", "/threads", json!({ "thread_id": 5 })),
        ("POST", "/threads", json!({ "thread_id": "abc" })),
        ("POST", "/threads", json!({ "metadata": "x" })),
        ("POST", "/threads", json!({ "if_exists": "maybe" })),
        ("POST", "/threads", json!({ "ttl": { "ttl": -1 } })),
        (
            "POST",
            "/threads",
            json!({ "ttl": { "ttl": 5, "strategy": "keep" } }),
        ),
        ("POST", "/threads", json!({ "supersteps": 1 })),
        ("POST", "/threads", json!({ "supersteps": [{}] })),
        (
            "POST",
            "/threads",
            json!({ "supersteps": [{ "updates": [{}] }] }),
        ),
        (
            "POST",
            "/threads",
            json!({ "supersteps": [{ "updates": [{ "as_node": 5 }] }] }),
        ),
        (
            "POST",
            "/threads",
            json!({ "supersteps": [{ "updates": [{ "as_node": "__start__", "values": 5 }] }] }),
        ),
        (
            "POST",
            "/threads",
            json!({ "supersteps": [{ "updates": [{ "as_node": "__start__", "command": { "goto": 1 } }] }] }),
        ),
        (
            "POST",
            "/threads",
            json!({ "supersteps": [{ "updates": [{ "as_node": "__input__" }, { "as_node": "model" }] }] }),
        ),
        ("PATCH", own.as_str(), json!({ "metadata": [] })),
        ("PATCH", own.as_str(), json!({ "ttl": "5" })),
        ("POST", "/threads/search", json!({ "ids": "x" })),
        ("POST", "/threads/search", json!({ "ids": ["x"] })),
        (
            "POST",
            "/threads/search",
            json!({ "ids": vec![GONE; 10_001] }),
        ),
        ("POST", "/threads/search", json!({ "metadata": many })),
        ("POST", "/threads/search", json!({ "metadata": [] })),
        ("POST", "/threads/search", json!({ "values": "x" })),
        (
            "POST",
            "/threads/search",
            json!({ "values": { "messages": [] } }),
        ),
        ("POST", "/threads/search", json!({ "status": "nope" })),
        ("POST", "/threads/search", json!({ "limit": 0 })),
        ("POST", "/threads/search", json!({ "limit": 1001 })),
        ("POST", "/threads/search", json!({ "limit": 1.5 })),
        ("POST", "/threads/search", json!({ "offset": -1 })),
        ("POST", "/threads/search", json!({ "sort_by": "nope" })),
        ("POST", "/threads/search", json!({ "sort_order": "up" })),
        ("POST", "/threads/search", json!({ "select": "thread_id" })),
        ("POST", "/threads/search", json!({ "select": ["nope"] })),
        (
            "POST",
            "/threads/search",
            json!({ "extract": { "a": "secret.x" } }),
        ),
        ("POST", "/threads/search", json!({ "extract": { "a": 1 } })),
        (
            "POST",
            "/threads/search",
            json!({ "extract": (0..11).map(|n| (n.to_string(), json!("metadata.a"))).collect::<serde_json::Map<_, _>>() }),
        ),
        ("POST", "/threads/count", json!({ "status": 1 })),
        ("POST", "/threads/prune", json!({})),
        ("POST", "/threads/prune", json!({ "thread_ids": [5] })),
        (
            "POST",
            "/threads/prune",
            json!({ "thread_ids": [], "strategy": "nope" }),
        ),
        ("POST", &format!("{own}/history"), json!({ "limit": "x" })),
        ("POST", &format!("{own}/history"), json!({ "before": 5 })),
        ("POST", &format!("{own}/history"), json!({ "metadata": 5 })),
        (
            "POST",
            &format!("{own}/history"),
            json!({ "checkpoint": 5 }),
        ),
        ("POST", &format!("{own}/state/checkpoint"), json!({})),
        (
            "POST",
            &format!("{own}/state/checkpoint"),
            json!({ "checkpoint": {}, "subgraphs": "x" }),
        ),
        (
            "GET",
            &format!("{own}/state?subgraphs=perhaps"),
            Value::Null,
        ),
        ("GET", &format!("{own}/history?limit=0"), Value::Null),
        ("GET", "/threads/abc", Value::Null),
        ("DELETE", "/threads/abc", Value::Null),
        ("POST", "/threads/abc/copy", Value::Null),
    ];
    let before = gateway.post("/threads/search", json!({})).await.json();
    for (method, path, body) in cases {
        let response = gateway
            .send(
                method,
                path,
                Some(body.clone()).filter(|body| !body.is_null()),
            )
            .await;
        assert_eq!(
            response.code(),
            422,
            "{method} {path} {body}: {}",
            response.text()
        );
        assert!(
            response.json()["detail"].is_string(),
            "{method} {path} {body}"
        );
    }
    assert_eq!(
        gateway.post("/threads/search", json!({})).await.json(),
        before
    );
}

#[tokio::test]
async fn newest_state_metadata_is_patched_on_an_idle_thread() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/state");
    let patch = async |body: Value| gateway.send("PATCH", &path, Some(body)).await;
    let nothing = patch(json!({ "metadata": { "a": 1 } })).await;
    assert_eq!(nothing.code(), 404, "{}", nothing.text());
    gateway
        .post(&format!("/threads/{thread}/runs/wait"), saying("say a"))
        .await;
    let before = gateway.get(&path).await.json();
    let patched =
        patch(json!({ "metadata": { "a": { "b": 1 }, "run_id": "mine", "step": 99 } })).await;
    assert_eq!((patched.code(), patched.text()), (204, ""));
    let mut expected = before.clone();
    expected["metadata"]["a"] = json!({ "b": 1 });
    assert_eq!(gateway.get(&path).await.json(), expected);
    for wrong in [
        json!({}),
        json!({ "metadata": null }),
        json!({ "metadata": [] }),
        json!({ "metadata": "x" }),
        json!([]),
    ] {
        assert_eq!(patch(wrong.clone()).await.code(), 422, "{wrong}");
    }
    let unknown = gateway
        .send(
            "PATCH",
            &format!("/threads/{GONE}/state"),
            Some(json!({ "metadata": {} })),
        )
        .await;
    assert_eq!(unknown.code(), 404);
    let run = gateway
        .post(&format!("/threads/{thread}/runs"), saying("slow"))
        .await
        .json()["run_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(patch(json!({ "metadata": { "a": 2 } })).await.code(), 409);
    gateway
        .post(
            &format!("/threads/{thread}/runs/{run}/cancel?wait=1"),
            json!({}),
        )
        .await;
}
