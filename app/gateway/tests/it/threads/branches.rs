//! Branches: what they contain, how they continue, and which are refused.

use std::os::unix::fs::symlink;

use harness::ids::ThreadId;
use harness::runtime::actor_context::DEFAULT_USER_ID;
use harness::sandbox::{Root, VirtualPath, WriteMode};
use serde_json::{Value, json};

use crate::support::{Gateway, saying};

/// Sends the messages to a new thread and returns its path.
pub(super) async fn conversation(gateway: &Gateway, texts: &[&str]) -> String {
    let path = format!("/api/threads/{}", gateway.thread().await);
    for text in texts {
        say(gateway, &path, text).await;
    }
    path
}

pub(super) async fn say(gateway: &Gateway, path: &str, text: &str) {
    let run = gateway
        .post(&format!("{path}/runs/wait"), saying(text))
        .await;
    assert_eq!(run.code(), 200, "{}", run.text());
}

pub(super) fn id_of(path: &str) -> &str {
    path.rsplit('/').next().expect("an id")
}

/// Returns the rows of the transcript as (run, message id, text).
pub(super) async fn feed(gateway: &Gateway, path: &str) -> Vec<(String, String, String)> {
    let page = gateway.get(&format!("{path}/messages/page")).await.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let rows = page["data"].as_array().expect("rows").iter();
    let triple = rows.map(|row| {
        let content = &row["content"];
        (
            text(&row["run_id"]),
            text(&content["id"]),
            text(&content["content"]),
        )
    });
    triple.collect()
}

fn message_ids(feed: &[(String, String, String)]) -> Vec<&str> {
    feed.iter().map(|row| row.1.as_str()).collect()
}

/// Asserts that state and history have the messages of the feed, and returns their ids.
pub(super) async fn agreed_ids(gateway: &Gateway, path: &str) -> Vec<String> {
    let feed = feed(gateway, path).await;
    let state = gateway.get(&format!("{path}/state")).await.json();
    let history = gateway
        .post(&format!("{path}/history"), json!({ "limit": 1 }))
        .await
        .json();
    for messages in [
        &state["values"]["messages"],
        &history[0]["values"]["messages"],
    ] {
        let ids: Vec<&str> = messages
            .as_array()
            .expect("messages")
            .iter()
            .filter_map(|message| message["id"].as_str())
            .collect();
        assert_eq!(ids, message_ids(&feed), "{path}");
    }
    feed.into_iter().map(|row| row.1).collect()
}

/// Branches after a message and returns the response.
pub(super) async fn branch(gateway: &Gateway, path: &str, message: &str) -> Value {
    let body = json!({ "message_id": message, "message_ids": [message] });
    let response = gateway.post(&format!("{path}/branches"), body).await;
    assert_eq!(response.code(), 200, "{}", response.text());
    response.json()
}

pub(super) fn path_of(branch: &Value) -> String {
    format!(
        "/api/threads/{}",
        branch["thread_id"].as_str().expect("an id")
    )
}

#[tokio::test]
async fn branch_has_the_turns_up_to_its_message() {
    let gateway = Gateway::new();
    let original = conversation(&gateway, &["say a", "say b", "say c"]).await;
    let before = feed(&gateway, &original).await;
    let answer = before[3].1.as_str();
    let created = branch(&gateway, &original, answer).await;
    assert_eq!(created["parent_thread_id"], id_of(&original));
    assert_eq!(created["branched_from_message_id"], answer);
    assert_eq!(created["workspace_clone_mode"], "skipped_historical_turn");
    assert_eq!(created["history_seed_mode"], "seeded");

    let path = path_of(&created);
    let copied = feed(&gateway, &path).await;
    assert_eq!(message_ids(&copied), message_ids(&before[..4]));
    let seed = |n: usize| format!("branch-seed-{}-{n}", id_of(&path));
    let runs: Vec<&str> = copied.iter().map(|row| row.0.as_str()).collect();
    assert_eq!(runs, [seed(0), seed(0), seed(1), seed(1)]);
    assert_eq!(agreed_ids(&gateway, &path).await, message_ids(&before[..4]));

    let thread = gateway.get(&path).await.json();
    let metadata = &thread["metadata"];
    assert_eq!(metadata["deerflow_branch"], true);
    assert_eq!(metadata["branch_parent_thread_id"], id_of(&original));
    assert_eq!(
        metadata["branch_parent_checkpoint_id"],
        created["parent_checkpoint_id"]
    );
    assert_eq!(metadata["branch_parent_message_id"], answer);
    assert!(metadata["branch_created_at"].is_string());
    assert_eq!(gateway.get(&format!("{path}/runs")).await.json(), json!([]));
    assert_eq!(
        feed(&gateway, &original).await,
        before,
        "the original is unchanged"
    );
}

#[tokio::test]
async fn branch_continues_and_branches_again() {
    let gateway = Gateway::new();
    let original = conversation(&gateway, &["say a", "say b"]).await;
    let before = feed(&gateway, &original).await;
    let first = path_of(&branch(&gateway, &original, &before[1].1).await);
    say(&gateway, &first, "say c").await;
    let continued = agreed_ids(&gateway, &first).await;
    assert_eq!(continued[..2], [before[0].1.clone(), before[1].1.clone()]);
    assert_eq!(continued.len(), 4);

    let second = path_of(&branch(&gateway, &first, &continued[1]).await);
    assert_eq!(agreed_ids(&gateway, &second).await, continued[..2]);
    say(&gateway, &second, "say d").await;
    assert_eq!(agreed_ids(&gateway, &second).await.len(), 4);
    assert_eq!(agreed_ids(&gateway, &first).await, continued);
    assert_eq!(feed(&gateway, &original).await, before);
}

#[tokio::test]
async fn copied_turn_is_regenerated_and_edited() {
    let gateway = Gateway::new();
    let original = conversation(&gateway, &["say a", "say b"]).await;
    let before = feed(&gateway, &original).await;
    let path = path_of(&branch(&gateway, &original, &before[3].1).await);
    for (prepare, body) in [
        ("regenerate", json!({ "message_id": before[3].1 })),
        ("edit-regenerate", json!({ "replacement_text": "say z" })),
    ] {
        let rows = feed(&gateway, &path).await;
        let mut body = body;
        if prepare == "edit-regenerate" {
            body["human_message_id"] = rows[2].1.as_str().into();
        }
        let prepared = gateway
            .post(&format!("{path}/runs/{prepare}/prepare"), body)
            .await;
        assert_eq!(prepared.code(), 200, "{}", prepared.text());
        let prepared = prepared.json();
        assert_eq!(prepared["target_run_id"], rows[3].0.as_str());
        let run = json!({
            "input": prepared["input"], "checkpoint": prepared["checkpoint"], "metadata": prepared["metadata"],
        });
        let ended = gateway.post(&format!("{path}/runs/wait"), run).await;
        assert_eq!(ended.code(), 200, "{}", ended.text());
        let after = agreed_ids(&gateway, &path).await;
        assert_eq!(after.len(), 4, "{prepare}");
        assert_eq!(after[..2], [before[0].1.clone(), before[1].1.clone()]);
        assert_ne!(after[3], rows[3].1, "{prepare}");
    }
    assert_eq!(feed(&gateway, &path).await[3].2, "z");
    assert_eq!(feed(&gateway, &original).await, before);
}

#[tokio::test]
async fn regenerated_answer_is_branched_without_the_replaced_one() {
    let gateway = Gateway::new();
    let original = conversation(&gateway, &["say a"]).await;
    let old = feed(&gateway, &original).await[1].1.clone();
    let body = json!({ "message_id": old });
    let prepared = gateway
        .post(&format!("{original}/runs/regenerate/prepare"), body)
        .await
        .json();
    let run = json!({
        "input": prepared["input"], "checkpoint": prepared["checkpoint"], "metadata": prepared["metadata"],
    });
    gateway.post(&format!("{original}/runs/wait"), run).await;
    let new = feed(&gateway, &original).await[1].1.clone();
    assert_ne!(new, old);
    let created = branch(&gateway, &original, &new).await;
    assert_eq!(
        created["workspace_clone_mode"], "not_found",
        "it is the last turn"
    );
    let ids = agreed_ids(&gateway, &path_of(&created)).await;
    assert_eq!((ids.len(), &ids[1]), (2, &new));
}

#[tokio::test]
async fn title_is_the_given_one_or_that_of_the_thread() {
    let gateway = Gateway::new();
    let original = conversation(&gateway, &["say a"]).await;
    gateway
        .post(
            &format!("{original}/state"),
            json!({ "values": { "title": "Old" } }),
        )
        .await;
    let answer = feed(&gateway, &original).await[1].1.clone();
    let given = json!({ "message_id": answer, "title": "New" });
    let title = async |created: Value| {
        let state = gateway
            .get(&format!("{}/state", path_of(&created)))
            .await
            .json();
        state["values"]["title"].clone()
    };
    let created = gateway
        .post(&format!("{original}/branches"), given)
        .await
        .json();
    assert_eq!(title(created).await, "New");
    assert_eq!(
        title(branch(&gateway, &original, &answer).await).await,
        "Old"
    );
    let long = json!({ "message_id": answer, "title": "x".repeat(257) });
    assert_eq!(
        gateway
            .post(&format!("{original}/branches"), long)
            .await
            .code(),
        422
    );
}

#[tokio::test]
async fn files_are_copied_from_the_last_turn_only() {
    let gateway = Gateway::new();
    let original = conversation(&gateway, &["say a", "say b"]).await;
    let rows = feed(&gateway, &original).await;
    let id = ThreadId::parse(id_of(&original)).expect("an id");
    let files = gateway.files.home.thread(DEFAULT_USER_ID, &id);
    let report = VirtualPath::parse("/mnt/user-data/workspace/report.md").expect("a path");
    files
        .write_text(&report, "text".to_owned(), WriteMode::Replace)
        .await
        .expect("written");
    let workspace = files.blocking().dirs().host_path(Root::Workspace);
    symlink("/etc/hostname", workspace.join("link")).expect("a link");

    let last = branch(&gateway, &original, &rows[3].1).await;
    assert_eq!(last["workspace_clone_mode"], "current_thread_best_effort");
    let of = |branch: &Value| {
        let id = ThreadId::parse(id_of(&path_of(branch))).expect("an id");
        gateway.files.home.thread(DEFAULT_USER_ID, &id)
    };
    let copy = of(&last);
    assert_eq!(copy.read_bytes(&report, 100).await.expect("read"), b"text");
    let link = copy
        .blocking()
        .dirs()
        .host_path(Root::Workspace)
        .join("link");
    assert!(std::fs::symlink_metadata(link).expect("there").is_symlink());
    let earlier = branch(&gateway, &original, &rows[1].1).await;
    assert_eq!(earlier["workspace_clone_mode"], "skipped_historical_turn");
    assert!(!of(&earlier).exists(&report).await.expect("read"));
    let threads = gateway
        .files
        .home
        .home()
        .join("users")
        .join(DEFAULT_USER_ID)
        .join("threads");
    let hidden = std::fs::read_dir(threads)
        .expect("a folder")
        .filter_map(Result::ok);
    let hidden = hidden.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "no marker remains");
}

#[tokio::test]
async fn busy_thread_is_branched_after_earlier_turns_only() {
    let gateway = Gateway::new();
    let original = conversation(&gateway, &["say a", "say b"]).await;
    let rows = feed(&gateway, &original).await;
    let run = gateway
        .post(&format!("{original}/runs"), saying("slow"))
        .await
        .json();
    let body = json!({ "message_id": rows[3].1 });
    let busy = gateway.post(&format!("{original}/branches"), body).await;
    assert_eq!(busy.code(), 409, "{}", busy.text());
    let earlier = branch(&gateway, &original, &rows[1].1).await;
    assert_eq!(earlier["workspace_clone_mode"], "skipped_historical_turn");
    assert_eq!(agreed_ids(&gateway, &path_of(&earlier)).await.len(), 2);
    let run = run["run_id"].as_str().expect("an id");
    let cancel = format!("{original}/runs/{run}/cancel");
    gateway.post(&cancel, json!({})).await;
}

#[tokio::test]
async fn side_conversations_and_unknown_messages_are_refused() {
    let gateway = Gateway::new();
    let original = conversation(&gateway, &["say a"]).await;
    let answer = feed(&gateway, &original).await[1].1.clone();
    let refused = async |path: &str, message: &str| {
        let body = json!({ "message_id": message });
        gateway.post(&format!("{path}/branches"), body).await
    };
    let unknown = refused(&original, "no-message").await;
    assert_eq!(
        (unknown.code(), &unknown.json()["detail"]),
        (404, &json!("Message no-message not found"))
    );
    let absent = format!("/api/threads/{}", super::GONE);
    assert_eq!(refused(&absent, &answer).await.code(), 404);
    assert_eq!(
        gateway
            .post(&format!("{original}/branches"), json!({}))
            .await
            .code(),
        422
    );
    gateway
        .send(
            "PATCH",
            &original,
            Some(json!({ "metadata": { "deerflow_sidecar": true } })),
        )
        .await;
    assert_eq!(refused(&original, &answer).await.code(), 409);
}

#[tokio::test]
async fn removed_turn_can_no_longer_be_branched() {
    let gateway = Gateway::new();
    let original = conversation(&gateway, &["say a"]).await;
    let answer = feed(&gateway, &original).await[1].1.clone();
    let newest = gateway.get(&format!("{original}/state")).await.json();
    let thread = ThreadId::parse(id_of(&original)).expect("an id");
    assert!(newest["checkpoint_id"].is_string());
    let kept = harness::runtime::checkpoint::HistoryRetention {
        newest: 1,
        since: None,
    };
    gateway
        .post(
            &format!("{original}/state"),
            json!({ "values": { "messages": [] } }),
        )
        .await;
    for _ in 0..3 {
        gateway
            .post(
                &format!("{original}/state"),
                json!({ "values": { "title": "t" } }),
            )
            .await;
    }
    let checkpoints = &gateway.state.thread_services.checkpoints;
    checkpoints
        .forget_history(&thread, &kept, 100)
        .await
        .expect("removed");
    let body = json!({ "message_id": answer });
    let refused = gateway.post(&format!("{original}/branches"), body).await;
    assert_eq!(
        (refused.code(), &refused.json()["detail"]),
        (409, &json!("This turn can no longer be branched from."))
    );
}
