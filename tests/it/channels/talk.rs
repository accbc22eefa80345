//! A person talks to the agent.

use deerflow_chat_platforms::telegram::{Post, PostedFile, TelegramOptions};
use serde_json::Value;

use super::rig::ChannelRig;

async fn start() -> ChannelRig {
    ChannelRig::start(TelegramOptions::default(), "").await
}

async fn get(rig: &ChannelRig, path: &str) -> Value {
    let url = format!("{}{path}", rig.gateway.base_url());
    let answer = reqwest::get(url).await.expect("answer");
    answer.json().await.expect("JSON")
}

#[tokio::test]
async fn message_is_answered_and_survives_a_restart() {
    let mut rig = start().await;
    rig.telegram.say(42, 42, "then say **Hello**.");
    let answers = rig.answers(42, 1).await;
    assert_eq!(answers, ["Hello."]);
    let bold = &rig.telegram.answers(42)[0].entities[0];
    assert_eq!(
        (&bold["type"], &bold["length"]),
        (&"bold".into(), &5.into())
    );
    rig.gateway.terminate().await.expect("stopped");
    rig.telegram.say(42, 42, "then say Again.");
    rig.gateway.restart().await.expect("started");
    assert_eq!(rig.answers(42, 2).await, ["Hello.", "Again."]);
}

#[tokio::test]
async fn received_file_is_an_upload_and_presented_file_is_sent() {
    let rig = start().await;
    let post = Post {
        text: "[[tool:bash {}]] then say I have it.".to_owned(),
        file: Some(PostedFile::document("notes.txt", "text/plain", "buy milk")),
        ..Post::default()
    };
    rig.telegram.post(42, 42, post);
    assert_eq!(rig.answers(42, 1).await, ["I have it."]);
    let uploads = std::fs::read_dir(rig.gateway.home()).expect("home");
    let found = walk(uploads, "notes.txt");
    assert_eq!(found.as_deref(), Some("buy milk"));
}

/// Returns the text of the file with this name below a folder.
fn walk(folder: std::fs::ReadDir, name: &str) -> Option<String> {
    folder.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return std::fs::read_dir(path)
                .ok()
                .and_then(|inner| walk(inner, name));
        }
        (entry.file_name() == name).then(|| std::fs::read_to_string(path).ok())?
    })
}

#[tokio::test]
async fn token_appears_in_no_log_and_in_no_answer() {
    let rig = start().await;
    rig.telegram.faults().script(
        "sendMessage",
        [deerflow_chat_platforms::common::Fault::Drop],
    );
    rig.telegram.say(42, 42, "then say Hello.");
    rig.answers(42, 1).await;
    let token = rig.telegram.token();
    let secret = token.split(':').nth(1).expect("secret");
    assert!(
        !rig.gateway.logs().contains(secret),
        "{}",
        rig.gateway.logs()
    );
    for path in ["/api/channels/", "/api/channels/providers", "/metrics"] {
        let answer = reqwest::get(format!("{}{path}", rig.gateway.base_url()))
            .await
            .expect("answer");
        assert!(
            !answer.text().await.expect("text").contains(secret),
            "{path}"
        );
    }
    assert!(get(&rig, "/health").await.is_object());
}
