//! Messages of people whose accounts are disabled.

use deerflow_chat_platforms::telegram::TelegramOptions;
use serde_json::json;

use super::rig::ChannelRig;
use crate::rig::browser::Browser;
use crate::rig::{text, until};

/// Changes an account by the command line, while the gateway runs.
async fn users(rig: &ChannelRig, action: &str) {
    let arguments = ["users", action, "ann@example.org"];
    let output = rig.gateway.program(&arguments).output().await.expect("ran");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
}

#[tokio::test]
async fn message_of_disabled_account_starts_no_run() {
    let connections = "channel_connections: {enabled: true, telegram: {enabled: true}}\n";
    let rig = ChannelRig::start(TelegramOptions::default(), connections).await;
    let mut root = Browser::new(&rig.gateway);
    assert_eq!(
        root.sign_up("initialize", "root@example.org").await.status,
        201
    );
    let mut ann = Browser::new(&rig.gateway);
    assert_eq!(ann.sign_up("register", "ann@example.org").await.status, 201);
    let code = ann
        .post("/api/channels/telegram/connect", json!({}))
        .await
        .ok();
    let code = text(&code["code"]).to_owned();
    rig.telegram.say(42, 42, &format!("/connect {code}"));
    rig.answers(42, 1).await;
    rig.telegram.say(42, 42, "then say Hello.");
    assert_eq!(rig.answers(42, 2).await[1], "Hello.");
    users(&rig, "disable").await;
    rig.telegram.say(42, 42, "then say Refused.");
    until("the end of the message", async || {
        (rig.telegram.unconfirmed() == 0).then_some(())
    })
    .await;
    rig.telegram.say(43, 43, "then say Hello.");
    rig.answers(43, 1).await;
    users(&rig, "enable").await;
    rig.telegram.say(42, 42, "then say Again.");
    let answers = rig.answers(42, 3).await;
    assert_eq!(answers[2..], ["Again."]);
}
