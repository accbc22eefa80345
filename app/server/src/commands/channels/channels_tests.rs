//! Tests of `deerflow channels` over stores in memory.

use std::time::Duration;

use clap::Parser;
use deerflow_domain::channels::{
    Account, AccountClaim, ChannelStoreError, InMemoryChannels, InboxBatch, InboxEnd, InboxLimits,
    InboxState, MessageKey, NewInboxMessage, NewOutgoing, Urgency,
};
use harness::testkit::at;
use serde_json::Value;

use super::*;
use crate::cli::{Cli, Command};
use crate::commands::test_telegram::{TestTelegram, inspector};

/// Stores of a bot with a received message and a dead letter.
struct Installation {
    stores: ChannelStores,
    claim: AccountClaim,
    inspector: ChannelInspector,
    has_database: bool,
}

impl Installation {
    async fn with(channels: Value) -> Self {
        let stores = InMemoryChannels::stores();
        let account = Account::new("telegram", "7");
        let lease = Duration::from_secs(15);
        let claim = stores.leases.acquire(&account, "n1", lease, at(0)).await;
        let claim = claim.unwrap().unwrap();
        let message = NewInboxMessage {
            key: MessageKey {
                account: account.clone(),
                workspace: String::new(),
                chat: "42".to_owned(),
                message: "m1".to_owned(),
            },
            conversation: "42".to_owned(),
            urgency: Urgency::InOrder,
            event: json!({"sender": {"id": "ann"}, "body": {"message": {"text": "top\nsecret"}}}),
        };
        let batch = InboxBatch {
            messages: vec![message],
            cursor: None,
        };
        let limits = InboxLimits::default();
        let accepted = stores.inbox.accept(&claim, batch, limits, at(1)).await;
        accepted.unwrap();
        let part = json!({"markup": "my *answer*", "plain": "my answer"});
        let target = json!({"chat": {"id": "42", "kind": "direct"}, "person": "ann"});
        let letter = NewOutgoing {
            id: "00000000-0000-0000-0000-000000000001".parse().unwrap(),
            account,
            chat: "42".to_owned(),
            conversation: "42".to_owned(),
            part: 0,
            body: json!({"target": target, "content": {"text": part}}),
        };
        let id = letter.id;
        let outbox = &stores.outbox;
        outbox.enqueue(&claim, vec![letter], at(2)).await.unwrap();
        outbox
            .bury(&claim, id, "chat not found", at(3))
            .await
            .unwrap();
        Self {
            stores,
            claim,
            inspector: inspector(channels),
            has_database: true,
        }
    }

    async fn new() -> Self {
        Self::with(
            json!({"telegram": {"enabled": true, "bot_token": "1:t"}, "wechat": {"enabled": true}}),
        )
        .await
    }

    async fn run(&self, words: &str) -> anyhow::Result<String> {
        let cli = Cli::parse_from(format!("deerflow channels {words}").split(' '));
        let Ok(Command::Channels(command)) = cli.into_command() else {
            panic!("{words}")
        };
        let operations = ChannelOperations {
            stores: &self.stores,
            inspector: &self.inspector,
            has_database: self.has_database,
            in_use: true,
            now: at(11),
        };
        let mut out = Vec::new();
        operations.run(&command, &mut out).await?;
        Ok(String::from_utf8(out).unwrap())
    }

    async fn json(&self, words: &str) -> Value {
        let text = self.run(&format!("{words} --json")).await.unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

#[tokio::test]
async fn status_shows_holder_and_waiting_work() {
    let installation = Installation::new().await;
    let text = installation.run("status").await.unwrap();
    let telegram = text
        .lines()
        .find(|line| line.starts_with("telegram"))
        .unwrap();
    for part in ["yes", "complete", "n1", "4.0 s left", "10.0 s"] {
        assert!(telegram.contains(part), "{part}: {text}");
    }
    assert!(
        text.contains("wechat is enabled, but not supported"),
        "{text}"
    );
    let slack = text.lines().find(|line| line.starts_with("slack")).unwrap();
    assert!(slack.contains("without bot_token, app_token"), "{text}");
    let rows = installation.json("status").await;
    let row = &rows[0];
    assert_eq!(
        (
            &row["channel"],
            &row["enabled"],
            &row["configured"],
            &row["account"]
        ),
        (&json!("telegram"), &json!(true), &json!(true), &json!("7"))
    );
    assert_eq!(
        (&row["holder"], &row["epoch"], &row["inbox_waiting"]),
        (&json!("n1"), &json!(1), &json!(1))
    );
    let age = row["inbox_age_seconds"].as_f64().unwrap();
    assert!((9.9..10.1).contains(&age), "{age}");
    assert_eq!(
        (&row["outbox_pending"], &row["dead_letters"]),
        (&json!(0), &json!(1))
    );
}

#[tokio::test]
async fn texts_are_listed_on_request_only() {
    let installation = Installation::new().await;
    let listed = installation.run("inbox").await.unwrap();
    assert!(listed.contains("ann") && listed.contains("waiting") && !listed.contains("secret"));
    let with_text = installation.run("inbox --text").await.unwrap();
    assert!(with_text.contains("top secret"), "{with_text}");
    let json = installation
        .json("inbox --state waiting --provider telegram")
        .await;
    assert_eq!(
        (&json[0]["chat"], &json[0].get("text")),
        (&json!("42"), &None)
    );
    let json = installation.json("inbox --text").await;
    assert_eq!(json[0]["text"], "top\nsecret");
    for none in [
        "inbox --state answered",
        "inbox --provider slack",
        "inbox --limit 0",
    ] {
        assert_eq!(installation.json(none).await, json!([]), "{none}");
    }
    let listed = installation.run("letters").await.unwrap();
    assert!(
        listed.contains("chat not found") && !listed.contains("answer"),
        "{listed}"
    );
    let json = installation.json("letters --text").await;
    assert_eq!(
        (&json[0]["text"], &json[0]["error"]),
        (&json!("my answer"), &json!("chat not found"))
    );
    assert_eq!(
        installation.json("letters --state pending").await,
        json!([])
    );
}

#[tokio::test]
async fn ended_message_shows_its_note() {
    let installation = Installation::new().await;
    let id = installation.json("inbox").await[0]["id"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let end = InboxEnd {
        state: InboxState::SetAside,
        note: Some("it failed".to_owned()),
    };
    let inbox = &installation.stores.inbox;
    let ended = inbox
        .end(&installation.claim, &[id], end, Vec::new(), at(5))
        .await;
    ended.unwrap();
    let listed = installation.run("inbox --state set_aside").await.unwrap();
    assert!(listed.contains("it failed"), "{listed}");
}

#[tokio::test]
async fn dead_letter_is_sent_again_once() {
    let installation = Installation::new().await;
    let id = "00000000-0000-0000-0000-000000000001";
    let printed = installation.run(&format!("resend {id}")).await.unwrap();
    assert!(printed.contains(id), "{printed}");
    assert_eq!(
        installation
            .stores
            .outbox
            .depth(&installation.claim.account)
            .await,
        Ok(1)
    );
    for unknown in [id, "x", "00000000-0000-0000-0000-000000000002"] {
        let refused = installation.run(&format!("resend {unknown}")).await;
        assert!(refused.unwrap_err().to_string().contains("no dead letter"));
    }
}

#[tokio::test]
async fn restart_revokes_leases_of_the_channel() {
    let installation = Installation::new().await;
    let printed = installation.run("restart telegram").await.unwrap();
    assert!(printed.contains("telegram will connect again"), "{printed}");
    let leases = &installation.stores.leases;
    let renewed = leases
        .renew(&installation.claim, Duration::from_secs(15), at(12))
        .await;
    assert_eq!(renewed, Err(ChannelStoreError::Fenced));
    assert_eq!(installation.json("status").await[0]["holder"], Value::Null);
    let never = installation.run("restart slack").await.unwrap_err();
    assert!(never.to_string().contains("never been connected"));
    let unknown = installation.run("restart wechat").await.unwrap_err();
    assert!(
        unknown.to_string().contains("supported are telegram"),
        "{unknown}"
    );
}

#[tokio::test]
async fn commands_without_database_are_refused() {
    let mut installation = Installation::new().await;
    installation.has_database = false;
    assert!(installation.run("status").await.is_ok());
    for words in ["inbox", "letters", "resend x", "restart telegram"] {
        let refused = installation.run(words).await.unwrap_err();
        assert!(refused.to_string().contains("no database"), "{words}");
    }
}

#[tokio::test]
async fn bot_is_identified_with_its_warnings() {
    let telegram = TestTelegram::with_bot().await;
    let entry = json!({"telegram": {"bot_token": "1:t", "api_base": telegram.base}});
    let installation = Installation::with(entry).await;
    let printed = installation.run("test telegram").await.unwrap();
    assert!(printed.contains("@helper (account 7)"), "{printed}");
    assert!(printed.contains("warning: privacy mode is on"), "{printed}");
    assert_eq!(installation.json("test telegram").await["account"], "7");
}

#[tokio::test]
async fn refused_or_unknown_bot_is_an_error() {
    let telegram = TestTelegram::refusing().await;
    let entry = json!({"telegram": {"bot_token": "1:t0ken", "api_base": telegram.base}});
    let installation = Installation::with(entry).await;
    let refused = format!("{:#}", installation.run("test telegram").await.unwrap_err());
    assert!(!refused.contains("t0ken"), "{refused}");
    let missing = format!("{:#}", installation.run("test slack").await.unwrap_err());
    assert!(missing.contains("channels.slack"), "{missing}");
    assert!(installation.run("test wechat").await.is_err());
}
