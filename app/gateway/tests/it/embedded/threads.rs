//! Threads: goals, rows, uploads and artifacts.

use std::path::PathBuf;

use deerflow_gateway::queries::thread_index::GatewayThreadIndex;
use harness::client::ClientError;
use harness::ids::ThreadId;
use harness::middlewares::goal::GoalError;
use harness::runtime::actor_context::{ActorContext, scope};
use harness::runtime::threads::ThreadError;
use harness::testkit::skill_archives::{compressed, skill_text};
use harness::testkit::thread_index;
use serde_json::{Value, json};

use super::{Both, assert_same, assert_same_error};
use crate::support::{Gateway, saying};
use crate::uploads::{BOUNDARY, form};

#[tokio::test]
async fn goals_are_equal() {
    let both = Both::new().await;
    let (client, path) = (&both.client, both.of_thread("goal"));
    assert_same(
        &both.get(&path).await,
        &client.get_goal(&both.thread).await.expect("no goal"),
    );
    let put = both
        .gateway
        .send("PUT", &path, Some(json!({ "objective": " Ship it " })))
        .await;
    let result = client.get_goal(&both.thread).await.expect("a goal");
    assert_eq!(
        result.goal.as_ref().map(|goal| &*goal.objective),
        Some("Ship it")
    );
    assert_same(&put, &result);
    let set = client
        .set_goal(&both.thread, " Rest ")
        .await
        .expect("a goal");
    assert_same(&both.get(&path).await, &set);
    for objective in [" ".to_owned(), "x".repeat(4_001)] {
        let response = both
            .gateway
            .send("PUT", &path, Some(json!({ "objective": objective })))
            .await;
        let Err(ClientError::Goal(GoalError::Objective(issue))) =
            client.set_goal(&both.thread, &objective).await
        else {
            panic!()
        };
        assert_eq!(
            (response.code(), &response.json()["detail"][0]["msg"]),
            (422, &json!(issue.to_string()))
        );
    }
    let run = both
        .gateway
        .post(&both.of_thread("runs"), saying("slow"))
        .await
        .json()["run_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(both.gateway.send("DELETE", &path, None).await.code(), 409);
    assert!(matches!(
        client.clear_goal(&both.thread).await,
        Err(ClientError::Goal(GoalError::Busy(_)))
    ));
    assert!(matches!(
        client.set_goal(&both.thread, "x").await,
        Err(ClientError::Goal(GoalError::Busy(_)))
    ));
    both.gateway
        .post(
            &both.of_thread(&format!("runs/{run}/cancel?wait=1")),
            json!({}),
        )
        .await;
    let cleared = client.clear_goal(&both.thread).await.expect("cleared");
    assert_same(&both.get(&path).await, &cleared);
    let early = ThreadId::parse("63fc735a-a27d-408f-adc4-705b1c1c7009").expect("an id");
    let set = client
        .set_goal(&early, "early")
        .await
        .expect("a goal before the first message");
    assert_same(&both.get(&format!("/api/threads/{early}/goal")).await, &set);
}

#[tokio::test]
async fn threads_are_equal() {
    let both = Both::new().await;
    let client = &both.client;
    let other = both.gateway.thread().await;
    both.gateway
        .post(&both.of_thread("runs/wait"), saying("say hi"))
        .await;
    client.set_goal(&both.thread, "more").await.expect("a goal");
    let pinned = json!({ "metadata": { "deerflow_pinned": true, "of": "mine" } });
    both.gateway
        .send("PATCH", &format!("/api/threads/{other}"), Some(pinned))
        .await;
    let listed = client
        .get_thread(&both.thread)
        .await
        .expect("threads")
        .expect("a thread");
    assert_eq!(listed.values["messages"].as_array().map(Vec::len), Some(2));
    assert_same(
        &both.get(&format!("/api/threads/{}", both.thread)).await,
        &listed,
    );
    let listed = client.list_threads(10).await.expect("threads");
    assert_eq!(
        listed
            .iter()
            .map(|thread| thread.thread_id.as_str())
            .collect::<Vec<_>>(),
        [&*other, both.thread.as_str()]
    );
    assert_same(
        &both
            .gateway
            .post("/api/threads/search", json!({ "limit": 10 }))
            .await,
        &listed,
    );
    assert_same(
        &both
            .gateway
            .post("/api/threads/search", json!({ "limit": 1 }))
            .await,
        &client.list_threads(1).await.expect("threads"),
    );

    let none = ThreadId::parse("63fc735a-a27d-408f-adc4-705b1c1c7008").expect("an id");
    assert_eq!(client.get_thread(&none).await.expect("threads"), None);
    scope(ActorContext::user("bob"), async {
        assert_eq!(
            client.get_thread(&both.thread).await.expect("threads"),
            None
        );
        assert_eq!(client.list_threads(10).await.expect("threads"), []);
        assert_eq!(
            client.get_goal(&both.thread).await.expect("no goal").goal,
            None
        );
        assert!(matches!(
            client.set_goal(&both.thread, "mine").await,
            Err(ClientError::Goal(GoalError::Thread(ThreadError::Taken(_))))
        ));
    })
    .await;
}

#[tokio::test]
async fn thread_index_satisfies_its_contract() {
    let gateway = Gateway::new();
    thread_index::satisfies_thread_index_contract(
        &GatewayThreadIndex(gateway.state.clone()),
        &*gateway.state.thread_services.checkpoints,
    )
    .await;
}

#[tokio::test]
async fn uploads_are_equal_except_for_host_paths() {
    let both = Both::new().await;
    let client = &both.client;
    let other = ThreadId::parse(both.gateway.thread().await).expect("an id");
    let (plan, notes) = (
        both.put("plan.pdf", b"the plan"),
        both.put("a b.txt", b"notes"),
    );
    let uploaded = client
        .upload_files(&both.thread, &[&plan, &notes, &notes])
        .await
        .expect("uploaded");
    let parts: [(&str, &str, &[u8]); 3] = [
        ("files", "plan.pdf", b"the plan"),
        ("files", "a b.txt", b"notes"),
        ("files", "a b.txt", b"notes"),
    ];
    let response = both
        .gateway
        .raw(
            "POST",
            &format!("/api/threads/{other}/uploads"),
            form(&parts),
            &[BOUNDARY],
        )
        .await;
    let here = |text: &str| text.replace(other.as_str(), both.thread.as_str());
    let virtually = |result: Value| {
        let mut result = result;
        for file in result["files"].as_array_mut().expect("files") {
            let path = file["path"].as_str().expect("a path");
            assert!(
                path.starts_with(both.gateway.files.home.home().to_str().expect("a path"))
                    && PathBuf::from(path).is_file()
            );
            file["path"] = file["virtual_path"].clone();
            file["markdown_path"] = file["markdown_virtual_path"].clone();
        }
        result.to_string()
    };
    assert_eq!(uploaded.files[0].markdown_file.as_deref(), Some("plan.md"));
    assert_eq!(
        (response.code(), here(response.text())),
        (200, virtually(json!(uploaded)))
    );
    let listed = client.list_uploads(&both.thread).await.expect("a list");
    assert_eq!(listed.count, 4);
    assert_eq!(
        both.get(&both.of_thread("uploads/list")).await.text(),
        virtually(json!(listed))
    );

    let deleted = client
        .delete_upload(&both.thread, "plan.pdf")
        .await
        .expect("deleted");
    let again = both
        .gateway
        .send(
            "DELETE",
            &format!("/api/threads/{other}/uploads/plan.pdf"),
            None,
        )
        .await;
    assert_same(&again, &deleted);
    for (name, segment, code) in [
        ("plan.pdf", "plan.pdf", 404),
        ("..", "%2e%2e", 400),
        ("../a b.txt", "..%2fa%20b.txt", 400),
    ] {
        let refused = both
            .gateway
            .send(
                "DELETE",
                &both.of_thread(&format!("uploads/{segment}")),
                None,
            )
            .await;
        assert_same_error(
            &refused,
            code,
            client.delete_upload(&both.thread, name).await,
        );
    }
}

#[tokio::test]
async fn artifacts_are_equal() {
    let both = Both::new().await;
    let archive = compressed(&[("own/SKILL.md", skill_text("own").as_bytes())]);
    let paths = [both.put("a.html", b"<p>"), both.put("own.skill", &archive)];
    both.client
        .upload_files(&both.thread, &paths)
        .await
        .expect("uploaded");
    for path in [
        "mnt/user-data/uploads/a.html",
        "mnt/user-data/uploads/own.skill",
        "mnt/user-data/uploads/own.skill/SKILL.md",
    ] {
        let response = both
            .get(&both.of_thread(&format!("artifacts/{path}")))
            .await;
        let (bytes, media_type) = both
            .client
            .get_artifact(&both.thread, path)
            .await
            .expect("an artifact");
        assert_eq!(
            (
                response.code(),
                response.header("content-type"),
                &*response.body
            ),
            (200, &*media_type, &*bytes),
            "{path}"
        );
    }
    for (path, code) in [
        ("mnt/user-data/uploads/none", 404),
        ("mnt/user-data/uploads/own.skill/none", 404),
        ("mnt/user-data/uploads", 400),
        ("etc/passwd", 400),
        ("mnt/user-data/uploads/%2e%2e/%2e%2e/x", 403),
    ] {
        let response = both
            .get(&both.of_thread(&format!("artifacts/{path}")))
            .await;
        assert_same_error(
            &response,
            code,
            both.client
                .get_artifact(&both.thread, &path.replace("%2e", "."))
                .await,
        );
    }
}
