//! `/api/threads/{t}/goal`, used by the web UI's `/goal` command.

use serde_json::{Value, json};

use crate::keys::User;
use crate::support::{Gateway, saying};

const NEW: &str = "63fc735a-a27d-408f-adc4-705b1c1c7001";

fn path(thread: &str) -> String {
    format!("/api/threads/{thread}/goal")
}

#[tokio::test]
async fn goal_is_set_before_the_first_message_read_and_cleared() {
    let gateway = Gateway::new();
    assert_eq!(
        gateway.get(&path(NEW)).await.json(),
        json!({ "goal": null })
    );
    assert_eq!(
        gateway.send("DELETE", &path(NEW), None).await.json(),
        json!({ "goal": null })
    );
    let set = gateway
        .send(
            "PUT",
            &path(NEW),
            Some(json!({ "objective": " Ship it ", "max_continuations": 3 })),
        )
        .await;
    let goal = set.json()["goal"].clone();
    assert_eq!(
        (set.code(), &goal["objective"], &goal["status"]),
        (200, &json!("Ship it"), &json!("active"))
    );
    let figures = [
        "continuation_count",
        "max_continuations",
        "no_progress_count",
        "max_no_progress_continuations",
    ]
    .map(|key| &goal[key]);
    assert_eq!(figures, [&json!(0), &json!(3), &json!(0), &json!(2)]);
    assert_eq!(
        gateway.get(&path(NEW)).await.json(),
        json!({ "goal": goal })
    );
    assert_eq!(
        gateway
            .get(&format!("/api/threads/{NEW}/state"))
            .await
            .json()["values"]["goal"],
        goal
    );
    let run = gateway
        .post(&format!("/api/threads/{NEW}/runs/wait"), saying("say hi"))
        .await;
    assert_eq!(
        (run.code(), &run.json()["goal"]),
        (200, &goal),
        "a run finds the goal in its state"
    );
    assert_eq!(
        gateway.send("DELETE", &path(NEW), None).await.json(),
        json!({ "goal": null })
    );
    assert_eq!(
        gateway.get(&path(NEW)).await.json(),
        json!({ "goal": null })
    );
    assert_eq!(
        gateway
            .get(&format!("/api/threads/{NEW}/state"))
            .await
            .json()["values"]
            .get("goal"),
        None
    );
}

#[tokio::test]
async fn invalid_goal_is_rejected() {
    let gateway = Gateway::new();
    for body in [
        json!({}),
        json!({ "objective": " " }),
        json!({ "objective": 7 }),
        json!({ "objective": "x".repeat(4_001) }),
        json!({ "objective": "x", "max_continuations": 9 }),
        json!({ "objective": "x", "max_continuations": -1 }),
        json!({ "objective": "x", "max_continuations": "many" }),
    ] {
        assert_eq!(
            gateway
                .send("PUT", &path(NEW), Some(body.clone()))
                .await
                .code(),
            422,
            "{body}"
        );
    }
    assert_eq!(
        gateway.get(&format!("/api/threads/{NEW}")).await.code(),
        404,
        "nothing was created"
    );
    assert_eq!(
        gateway
            .send("PUT", &path("a%20b"), Some(json!({ "objective": "x" })))
            .await
            .code(),
        422
    );
}

#[tokio::test]
async fn goal_change_is_rejected_during_a_run() {
    let gateway = Gateway::new();
    gateway
        .send("PUT", &path(NEW), Some(json!({ "objective": "x" })))
        .await;
    let run = gateway
        .post(&format!("/api/threads/{NEW}/runs"), saying("slow"))
        .await
        .json()["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let set = gateway
        .send("PUT", &path(NEW), Some(json!({ "objective": "y" })))
        .await;
    assert_eq!(
        (
            set.code(),
            set.json()["detail"]
                .as_str()
                .unwrap()
                .contains("run in flight")
        ),
        (409, true)
    );
    assert_eq!(gateway.send("DELETE", &path(NEW), None).await.code(), 409);
    gateway
        .post(
            &format!("/api/threads/{NEW}/runs/{run}/cancel?wait=1"),
            json!({}),
        )
        .await;
    assert_eq!(
        gateway.get(&path(NEW)).await.json()["goal"]["objective"],
        "x"
    );
}

#[tokio::test]
async fn goal_is_private_to_its_user() {
    let gateway = Gateway::new();
    let (ann, bob) = (
        User::new(&gateway, "ann").await,
        User::new(&gateway, "bob").await,
    );
    assert_eq!(
        ann.send("PUT", &path(NEW), json!({ "objective": "secret" }))
            .await
            .code(),
        200
    );
    assert_eq!(
        bob.send("GET", &path(NEW), Value::Null).await.json(),
        json!({ "goal": null })
    );
    assert_eq!(
        bob.send("DELETE", &path(NEW), Value::Null).await.json(),
        json!({ "goal": null })
    );
    assert_eq!(
        bob.send("PUT", &path(NEW), json!({ "objective": "mine" }))
            .await
            .code(),
        409
    );
    assert_eq!(
        ann.send("GET", &path(NEW), Value::Null).await.json()["goal"]["objective"],
        "secret"
    );
}
