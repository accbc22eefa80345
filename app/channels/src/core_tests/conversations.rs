//! Order, grouping and commands of conversations.

use std::sync::Arc;

use deerflow_domain::channels::{Account, InboxFilter, InboxState, OutgoingFilter};
use serde_json::json;

use super::rig::{Rig, config, within};
use crate::platform::EventBody;
use crate::words;

#[tokio::test]
async fn messages_of_a_conversation_are_answered_in_order() {
    let rig = Rig::start().await;
    for n in 0..10 {
        for chat in ["c1", "c2", "c3"] {
            rig.platform.say(chat, "ann", &format!("then say {n}."));
        }
    }
    for chat in ["c1", "c2", "c3"] {
        let expected: Vec<String> = (0..10).map(|n| format!("{n}.")).collect();
        let answers = within(rig.platform.wait_for(|platform| {
            let answers: Vec<String> = platform
                .texts(chat)
                .into_iter()
                .filter(|text| text != words::QUEUED)
                .collect();
            (answers.len() == 10).then_some(answers)
        }))
        .await;
        assert_eq!(answers, expected);
    }
}

#[tokio::test]
async fn max_concurrency_delays_other_conversations_but_no_stop() {
    let mut config = (*config(json!({}), json!({}))).clone();
    let mut channels = config.untyped("channels").unwrap().clone();
    channels["max_concurrency"] = json!(1);
    config.other.insert("channels", channels);
    let rig = Rig::with(Arc::new(config)).await;
    rig.platform
        .say("c1", "ann", "[[slow 2000x20ms]] then say a very long text");
    let first = |chat| {
        rig.platform.wait_for(move |platform| {
            let mut messages = platform.messages().into_iter();
            messages.find(|message| message.chat == chat)
        })
    };
    within(first("c1")).await;
    rig.platform.say("c2", "ann", "then say Second.");
    rig.platform.say("c1", "ann", "/stop");
    within(first("c2")).await;
    let filter = InboxFilter {
        limit: 9,
        ..InboxFilter::default()
    };
    let rows = rig.stores.inbox.list(&filter).await.unwrap();
    let waiting = rows.iter().filter(|row| row.state == InboxState::Waiting);
    assert!(waiting.clone().all(|row| row.key.chat == "c2"), "{rows:?}");
    assert_eq!(rig.answers("c2", 1).await, ["Second."]);
}

#[tokio::test]
async fn busy_conversation_says_that_a_message_is_queued() {
    let rig = Rig::start().await;
    rig.platform
        .say("c1", "ann", "[[slow 50x1000ms]] then say First.");
    rig.platform.say("c1", "ann", "then say Second.");
    rig.platform.say("c1", "ann", "then say Third.");
    assert_eq!(rig.answers("c1", 1).await, [words::QUEUED]);
    rig.platform.say("c1", "ann", "/stop");
    let answers = rig.answers("c1", 4).await;
    assert!(answers.contains(&"Second.".to_owned()), "{answers:?}");
    assert_eq!(answers[3], "Third.");
}

#[tokio::test]
async fn message_that_waits_briefly_gets_no_notice() {
    let rig = Rig::start().await;
    rig.platform
        .say("c1", "ann", "[[slow 40x10ms]] then say First.");
    rig.platform.say("c1", "ann", "then say Second.");
    assert_eq!(rig.answers("c1", 2).await, ["First.", "Second."]);
}

#[tokio::test]
async fn busy_conversation_is_interrupted_if_configured() {
    let rig = Rig::with(config(json!({"busy": "interrupt"}), json!({}))).await;
    rig.platform.say(
        "c1",
        "ann",
        "[[slow 2000x20ms]] then say a text without end",
    );
    within(
        rig.platform
            .wait_for(|platform| platform.messages().into_iter().next()),
    )
    .await;
    rig.platform.say("c1", "ann", "then say Second.");
    let answers = rig.answers("c1", 2).await;
    assert!(answers[0].ends_with(words::STOPPED), "{answers:?}");
    assert_eq!(answers[1], "Second.");
}

#[tokio::test]
async fn busy_conversation_refuses_if_configured() {
    let rig = Rig::with(config(json!({"busy": "refuse"}), json!({}))).await;
    rig.platform
        .say("c1", "ann", "[[slow 60x10ms]] then say First.");
    within(
        rig.platform
            .wait_for(|platform| platform.messages().into_iter().next()),
    )
    .await;
    rig.platform.say("c1", "ann", "then say Second.");
    let mut answers = rig.answers("c1", 2).await;
    answers.sort();
    assert_eq!(answers, ["First.", words::BUSY]);
}

#[tokio::test]
async fn new_conversation_has_another_thread() {
    let rig = Rig::start().await;
    rig.ask("c1", "then say Hello.").await;
    rig.ask("c1", "then say Again.").await;
    assert_eq!(rig.threads.0.lock().len(), 1);
    assert_eq!(rig.ask("c1", "/new").await, words::NEW_CONVERSATION);
    rig.ask("c1", "then say New.").await;
    let threads = rig.threads.0.lock();
    assert_eq!(threads.len(), 2);
    assert_ne!(threads[0].thread_id, threads[1].thread_id);
}

#[tokio::test]
async fn reply_to_the_bot_continues_its_conversation() {
    let rig = Rig::start().await;
    assert_eq!(rig.ask("g1", "then say Hello.").await, "Hello.");
    let answer = rig.platform.messages()[0].clone();
    let mut reply = rig.platform.message("g1", "bob", "then say Continued.");
    if let EventBody::Message(message) = &mut reply.body {
        message.reply_to = Some(answer.id);
    }
    rig.platform.deliver(reply);
    rig.answers("g1", 2).await;
    assert_eq!(rig.threads.0.lock().len(), 1);
    rig.ask("g1", "then say Other.").await;
    assert_eq!(rig.threads.0.lock().len(), 2);
}

#[tokio::test]
async fn waiting_message_follows_a_chat_to_its_new_id() {
    let rig = Rig::start().await;
    let in_topic = |text: &str| {
        let mut event = rig.platform.message("g1", "ann", text);
        if let EventBody::Message(message) = &mut event.body {
            message.topic = Some("t".to_owned());
        }
        event
    };
    let first = in_topic("[[slow 50x1000ms]] then say First.");
    rig.platform.deliver(first);
    within(
        rig.platform
            .wait_for(|platform| platform.messages().into_iter().next()),
    )
    .await;
    rig.platform.deliver(in_topic("then say Second."));
    let mut renamed = in_topic("");
    renamed.body = EventBody::Renamed {
        to: "g2".to_owned(),
    };
    rig.platform.deliver(renamed);
    rig.platform.deliver(in_topic("/stop"));
    assert_eq!(rig.answers("g2", 1).await, ["Second."]);
    assert_eq!(rig.threads.0.lock().len(), 1);
    assert!(rig.answers("g1", 1).await[0].ends_with(words::STOPPED));
}

#[tokio::test]
async fn commands_are_answered_without_a_run() {
    let rig = Rig::start().await;
    assert!(rig.ask("c1", "/help").await.contains("/new"));
    assert!(rig.ask("c1", "/status").await.contains("no conversation"));
    assert!(rig.ask("c1", "/nonsense").await.contains("/nonsense"));
    assert!(rig.ask("c1", "/models none").await.contains("none"));
    assert!(rig.ask("c1", "/memory").await.len() > 3);
    assert!(
        rig.ask("c1", "/goal write a poem")
            .await
            .contains("write a poem")
    );
    assert!(rig.ask("c1", "/goal clear").await.contains("no goal"));
}

#[tokio::test]
async fn very_long_answer_is_sent_as_a_file() {
    let rig = Rig::start().await;
    let word = "word ".repeat(12);
    let long = format!("[[slow 1x0ms]] then say {}", word.repeat(1_000));
    rig.platform.say("c1", "ann", &long);
    let answers = rig.answers("c1", 2).await;
    assert!(answers.len() >= 2, "{answers:?}");
    let filter = OutgoingFilter {
        limit: 99,
        ..OutgoingFilter::default()
    };
    let rows = rig.stores.outbox.list(&filter).await.unwrap();
    assert!(
        rows.iter()
            .all(|row| row.message.account == Account::new("memory", "bot"))
    );
}
