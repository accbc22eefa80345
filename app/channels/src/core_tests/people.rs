//! Who may use the bot.

use deerflow_domain::channels::{Account, Conversation, NewCode, PendingCode, code_hash};
use harness::clock::{Clock, SystemClock};
use harness::ids::ThreadId;
use serde_json::json;

use super::rig::{Rig, config};
use crate::platform::ChatKind;
use crate::words;

fn connected() -> serde_json::Value {
    json!({"enabled": true, "memory": {"enabled": true}})
}

async fn code(rig: &Rig, user: &str, code: &str) {
    let now = SystemClock.now();
    let new = NewCode {
        hash: code_hash(code),
        user_id: user.to_owned(),
        provider: "memory".to_owned(),
        expires_at: now + chrono::TimeDelta::seconds(600),
    };
    let created = rig.stores.connections.create_code(new, now).await;
    assert_eq!(created, Ok(PendingCode::Created));
}

#[tokio::test]
async fn stranger_is_asked_to_connect_and_code_connects() {
    let rig = Rig::with(config(json!({}), connected())).await;
    assert_eq!(rig.ask("c1", "then say Hello.").await, words::MUST_CONNECT);
    assert_eq!(rig.ask("c1", "/connect wrong").await, words::INVALID_CODE);
    code(&rig, "alice", "right").await;
    assert_eq!(rig.ask("c1", "/connect right").await, words::CONNECTED);
    assert_eq!(rig.ask("c1", "then say Hello.").await, "Hello.");
    assert_eq!(rig.threads.0.lock()[0].user_id.as_deref(), Some("alice"));
    assert_eq!(rig.ask("c1", "/connect right").await, words::INVALID_CODE);
}

#[tokio::test]
async fn last_connected_user_owns_the_identity() {
    let rig = Rig::with(config(json!({}), connected())).await;
    for user in ["alice", "bob"] {
        code(&rig, user, user).await;
        assert_eq!(
            rig.ask("c1", &format!("/connect {user}")).await,
            words::CONNECTED
        );
        rig.ask("c1", "then say Hello.").await;
    }
    let owners: Vec<_> = rig
        .threads
        .0
        .lock()
        .iter()
        .map(|thread| thread.user_id.clone())
        .collect();
    assert_eq!(owners, [Some("alice".to_owned()), Some("bob".to_owned())]);
}

#[tokio::test]
async fn person_outside_of_the_list_gets_no_reply() {
    let rig = Rig::with(config(json!({"allowed_users": ["bob"]}), json!({}))).await;
    rig.platform.say("c1", "ann", "then say Hello.");
    rig.platform.say("c1", "bob", "then say Permitted.");
    assert_eq!(rig.answers("c1", 1).await, ["Permitted."]);
}

#[tokio::test]
async fn too_many_exchanges_are_refused_once() {
    let rig = Rig::with(config(json!({"max_exchanges_per_minute": 2}), json!({}))).await;
    for n in 0..5 {
        rig.platform.say("c1", "ann", &format!("then say {n}."));
    }
    assert_eq!(rig.ask("c2", "then say Other.").await, "Other.");
    let answers = rig.answers("c1", 3).await;
    let refusals = answers
        .iter()
        .filter(|text| *text == words::TOO_FAST)
        .count();
    assert_eq!(refusals, 1, "{answers:?}");
}

#[tokio::test]
async fn stranger_cannot_interrupt_the_answer_of_another() {
    let rules = json!({"allowed_users": ["ann"], "busy": "interrupt"});
    let rig = Rig::with(config(rules, json!({}))).await;
    let first = rig
        .platform
        .message("g1", "ann", "[[slow 60x10ms]] then say Complete.");
    rig.platform.deliver(first.clone());
    super::rig::within(
        rig.platform
            .wait_for(|platform| platform.messages().into_iter().next()),
    )
    .await;
    let mut stranger = rig.platform.message("g1", "mallory", "then say Mine.");
    if let crate::platform::EventBody::Message(message) = &mut stranger.body {
        message.reply_to = Some(first.id);
    }
    rig.platform.deliver(stranger);
    assert_eq!(rig.answers("g1", 1).await, ["Complete."]);
}

/// Imported conversation of a group whose thread belongs to a user.
fn imported(chat: &str) -> Conversation {
    Conversation {
        account: Account::new("memory", "bot"),
        key: format!("{chat}:root"),
        chat: chat.to_owned(),
        topic: Some("root".to_owned()),
        thread_id: ThreadId::parse("of-alice").unwrap(),
        user_id: "alice".to_owned(),
        options: serde_json::Map::new(),
        question: None,
        created_at: chrono::DateTime::UNIX_EPOCH,
        updated_at: chrono::DateTime::UNIX_EPOCH,
    }
}

#[tokio::test]
async fn unconnected_person_in_an_imported_group_is_not_its_owner() {
    for rules in [
        json!({}),
        json!({"enabled": true, "require_bound_identity": false}),
    ] {
        let rig = Rig::with(config(json!({}), rules)).await;
        let conversations = &rig.stores.conversations;
        conversations.import(vec![imported("g1")]).await.unwrap();
        for text in ["/status", "then say Hello.", "then say Again."] {
            let mut event = rig.platform.message("g1", "mallory", text);
            if let crate::platform::EventBody::Message(message) = &mut event.body {
                message.topic = Some("root".to_owned());
            }
            let before = rig.platform.texts("g1").len();
            rig.platform.deliver(event);
            let answer = rig.answers("g1", before + 1).await.pop().unwrap();
            assert!(!answer.contains("of-alice"), "{answer}");
        }
        let created = rig.threads.0.lock().clone();
        let owners: Vec<_> = created.iter().map(|thread| &thread.user_id).collect();
        let of_group = crate::people::user_of_place("memory", "", ChatKind::Group, "g1");
        assert_eq!(owners, [&Some(of_group)]);
    }
}
