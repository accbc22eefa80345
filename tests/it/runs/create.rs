//! `POST /api/threads/{thread}/runs`, and reading runs back.

use serde_json::{Value, json};

use crate::rig::{MODEL, Rig, body, body_with, list, messages_of, text};

#[tokio::test]
async fn background_run_goes_from_pending_to_success() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let created = rig
        .post(
            &format!("/api/threads/{thread}/runs"),
            &body_with("then say x", json!({"metadata": {"k": 1}})),
        )
        .await;
    let run = created.ok();
    assert_eq!(run["status"], "pending");
    assert_eq!(run["thread_id"], *thread);
    assert_eq!(run["assistant_id"], "lead_agent");
    assert_eq!(run["metadata"], json!({"k": 1}));
    assert_eq!(run["multitask_strategy"], "reject");
    assert_eq!(run["kwargs"]["config"], json!({"recursion_limit": 1000}));
    assert!(run["kwargs"]["input"]["messages"].is_array(), "{run}");
    let run_id = text(&run["run_id"]);
    assert_eq!(
        created.headers["content-location"],
        format!("/api/threads/{thread}/runs/{run_id}")
    );
    assert_eq!(rig.wait_for_end(&thread, run_id).await, "success");
    assert_eq!(
        rig.visible_messages(&thread).await,
        messages_of(&[("human", "then say x"), ("ai", "x")])
    );
}

#[tokio::test]
async fn finished_run_reports_token_usage() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("[[usage 11,7]] then say x").await;
    let stored = rig.get_run(&run.thread, &run.run).await;
    let counts = [
        "total_input_tokens",
        "total_output_tokens",
        "total_tokens",
        "llm_call_count",
        "lead_agent_tokens",
    ];
    assert_eq!(
        counts.map(|count| stored[count].clone()),
        [11, 7, 18, 1, 18].map(Value::from),
        "{stored}"
    );
    assert_eq!(stored["stop_reason"], Value::Null);
}

#[tokio::test]
async fn runs_are_listed_newest_first() {
    let rig = Rig::start().await;
    let first = rig.run_prompt("then say x").await;
    let second = rig.run(&first.thread, &body("[[error 400]]")).await;
    let path = format!("/api/threads/{}/runs", first.thread);
    let ids = async |query: &str| {
        let runs = rig.get(&format!("{path}{query}")).await.ok();
        list(&runs)
            .iter()
            .map(|run| text(&run["run_id"]).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids("").await, [&*second.run, &first.run]);
    assert_eq!(ids("?limit=1").await, [&*second.run]);
    assert_eq!(ids("?limit=1&offset=1").await, [&*first.run]);
    assert_eq!(ids("?status=success").await, [&*first.run]);
    for query in [
        "?limit=-1",
        "?limit=x",
        "?offset=-1",
        "?limit=99999999999999999999",
    ] {
        let refused = rig.get(&format!("{path}{query}")).await;
        assert_eq!(refused.status, 422, "{query}: {}", refused.text);
    }
}

#[tokio::test]
async fn options_of_newer_clients_are_ignored() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let more = json!({"durability": "async", "checkpoint_during": true, "langsmith_tracer": {}, "stream_resumable": false, "of_tomorrow": [1]});
    let run = rig.run(&thread, &body_with("then say x", more)).await;
    assert_eq!(rig.wait_for_end(&thread, &run.run).await, "success");
}

#[tokio::test]
async fn unsupported_options_that_change_a_run_are_rejected() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    for (option, value) in [
        ("after_seconds", json!(5)),
        ("webhook", json!("http://127.0.0.1:1")),
        ("feedback_keys", json!(["a"])),
        ("stream_resumable", json!(true)),
        ("multitask_strategy", json!("enqueue")),
        ("if_not_exists", json!("reject")),
        ("on_completion", json!("keep")),
    ] {
        let detail = rig
            .post(
                &format!("/api/threads/{thread}/runs"),
                &body_with("hi", json!({option: value})),
            )
            .await
            .refusal(422);
        assert_eq!(detail[0]["type"], "unsupported_run_option", "{detail}");
        assert_eq!(detail[0]["loc"], json!(["body", option]));
        assert_eq!(detail[0]["ctx"], json!({"option": option}));
    }
    for modes in [
        json!(["values", "telepathy"]),
        json!("telepathy"),
        json!(["events"]),
        json!([7]),
    ] {
        let detail = rig
            .post(
                &format!("/api/threads/{thread}/runs/stream"),
                &body_with("hi", json!({"stream_mode": modes})),
            )
            .await
            .refusal(422);
        assert_eq!(detail[0]["type"], "unsupported_stream_mode", "{detail}");
    }
    assert_eq!(
        rig.get(&format!("/api/threads/{thread}/runs")).await.ok(),
        json!([])
    );
}

#[tokio::test]
async fn missing_thread_model_or_assistant_is_rejected() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    for path in ["/runs", "/runs/stream", "/runs/wait"] {
        rig.post(&format!("/api/threads/nobody{path}"), &body("hi"))
            .await
            .refusal(404);
        let path = format!("/api/threads/{thread}{path}");
        rig.post(
            &path,
            &body_with("hi", json!({"context": {"model_name": "nobody"}})),
        )
        .await
        .refusal(400);
        rig.post(
            &path,
            &body_with("hi", json!({"assistant_id": "not a name!"})),
        )
        .await
        .refusal(422);
        rig.post(&path, &body_with("hi", json!({"assistant_id": "nobody"})))
            .await
            .refusal(404);
        rig.post(
            &path,
            &body_with(
                "hi",
                json!({"checkpoint_id": "1f1e587d-3940-6c3b-8004-ec8076329b7c"}),
            ),
        )
        .await
        .refusal(404);
        rig.post(
            &path,
            &body_with(
                "hi",
                json!({"checkpoint": {"thread_id": "other", "checkpoint_id": "x"}}),
            ),
        )
        .await
        .refusal(400);
    }
    assert_eq!(
        rig.get(&format!("/api/threads/{thread}/runs")).await.ok(),
        json!([])
    );
    assert!(rig.model.requests().is_empty());
    for path in ["/runs/nobody", "/runs/nobody/stream", "/runs/nobody/join"] {
        rig.get(&format!("/api/threads/{thread}{path}"))
            .await
            .refusal(404);
    }
}

#[tokio::test]
async fn run_of_another_thread_is_not_found() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say x").await;
    let other = rig.thread().await;
    let path = format!("/api/threads/{other}/runs/{}", run.run);
    for way in ["", "/stream", "/join"] {
        rig.get(&format!("{path}{way}")).await.refusal(404);
    }
    rig.post(&format!("{path}/cancel"), &json!({}))
        .await
        .refusal(404);
}

#[tokio::test]
async fn messages_are_accepted_in_every_client_form() {
    let rig = Rig::start().await;
    for message in [
        json!({"role": "user", "content": "then say x"}),
        json!({"type": "human", "content": "then say x"}),
        json!({"type": "human", "content": [{"type": "text", "text": "then say x"}]}),
        json!({"role": "human", "content": "then say x", "id": "mine", "name": "someone"}),
    ] {
        let thread = rig.thread().await;
        let run = rig
            .run(
                &thread,
                &body_with("", json!({"input": {"messages": [message]}})),
            )
            .await;
        assert_eq!(
            rig.visible_messages(&thread).await,
            messages_of(&[("human", "then say x"), ("ai", "x")]),
            "{message}"
        );
        assert_eq!(run.names().last(), Some(&"end"));
    }
    for message in [
        json!(5),
        json!({"content": "hi"}),
        json!({"role": "martian", "content": "hi"}),
        json!({"role": "user", "content": 5}),
    ] {
        let thread = rig.thread().await;
        let refused = rig
            .post(
                &format!("/api/threads/{thread}/runs"),
                &body_with("", json!({"input": {"messages": [message]}})),
            )
            .await;
        let detail = refused.refusal(400);
        assert!(
            text(&detail).contains("input.messages[0]"),
            "{message}: {detail}"
        );
    }
}

#[tokio::test]
async fn model_receives_configured_parameters() {
    let rig = Rig::start().await;
    rig.run_prompt("then say x").await;
    let request = rig.model.requests().pop().expect("a call");
    assert_eq!(request.model.as_deref(), Some("scripted-1"));
    assert!(
        request.stream && request.auth.starts_with("Bearer sk-"),
        "{MODEL}: {}",
        request.auth
    );
    assert!(
        request.tools.iter().any(|tool| tool == "write_file"),
        "{:?}",
        request.tools
    );
}
