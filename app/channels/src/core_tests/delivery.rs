//! Sending, retries and the change of nodes.

use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use deerflow_domain::channels::{
    Acceptance, Account, ChannelRuntime, ChannelState, ChannelStores, InMemoryChannels, InboxBatch,
    InboxFilter, InboxLimits, MessageKey, NewInboxMessage, NewOutgoing, OutgoingFilter,
    OutgoingState,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::flaky_outbox::FlakyOutbox;
use super::rig::{Rig, config, within};
use crate::platform::PlatformError;
use crate::testkit::MemoryPlatform;

async fn rows(rig: &Rig, state: OutgoingState) -> usize {
    let filter = OutgoingFilter {
        state: Some(state),
        limit: 99,
        ..OutgoingFilter::default()
    };
    rig.stores.outbox.list(&filter).await.unwrap().len()
}

async fn wait_for_state(rig: &Rig, service: &crate::ChannelService, state: &ChannelState) {
    let waiting = async {
        while service.statuses().await[0].state != *state {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = rig;
    within(waiting).await;
}

#[tokio::test]
async fn failed_send_is_retried_and_lost_answer_is_not_repeated() {
    let rig = Rig::start().await;
    rig.platform
        .fail([PlatformError::Unavailable("down".to_owned())]);
    rig.platform.lose_answers(1);
    rig.platform.say("c1", "ann", "then say Hello.");
    assert_eq!(rig.answers("c1", 1).await, ["Hello."]);
    assert_eq!(rig.ask("c1", "then say Next.").await, "Next.");
    assert_eq!(rig.platform.texts("c1"), ["Hello.", "Next."]);
}

#[tokio::test]
async fn message_whose_record_failed_is_not_sent_again() {
    let stores = InMemoryChannels::stores();
    let outbox = FlakyOutbox::over(stores.outbox.clone(), 1);
    let stores = ChannelStores {
        outbox: outbox.clone(),
        ..stores
    };
    let (config, home) = (config(json!({}), json!({})), tempfile::tempdir().unwrap());
    let platform = MemoryPlatform::default().without_keys();
    let rig = Rig::over(config, home, platform, stores).await;
    assert_eq!(rig.ask("c1", "/new").await, crate::words::NEW_CONVERSATION);
    assert_eq!(rig.ask("c1", "/new").await, crate::words::NEW_CONVERSATION);
    assert_eq!(outbox.failures_left(), 0);
    assert_eq!(rig.platform.texts("c1").len(), 2);
    assert_eq!(rows(&rig, OutgoingState::Sent).await, 2);
}

#[tokio::test]
async fn live_message_follows_the_answer_before_it() {
    let rig = Rig::start().await;
    rig.platform
        .fail([PlatformError::Unavailable("down".to_owned())]);
    rig.platform.say("c1", "ann", "then say First.");
    rig.platform
        .say("c1", "ann", "[[slow 40x20ms]] then say Second.");
    let answers = within(rig.platform.wait_for(|platform| {
        let mut texts = platform.texts("c1");
        texts.retain(|text| text != crate::words::QUEUED);
        (texts.len() == 2).then_some(texts)
    }))
    .await;
    assert_eq!(answers, ["First.", "Second."]);
}

#[tokio::test]
async fn refused_message_becomes_a_dead_letter_and_is_sent_again() {
    let rig = Rig::start().await;
    rig.platform
        .fail([PlatformError::Refused("blocked".to_owned())]);
    rig.platform.say("c1", "ann", "then say Hello.");
    let buried = async {
        while rows(&rig, OutgoingState::Dead).await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(buried).await;
    assert_eq!(rig.ask("c1", "then say Next.").await, "Next.");
    assert_eq!(rows(&rig, OutgoingState::Dead).await, 1);
    let filter = OutgoingFilter {
        state: Some(OutgoingState::Dead),
        limit: 1,
        ..OutgoingFilter::default()
    };
    let dead = rig.stores.outbox.list(&filter).await.unwrap().remove(0);
    let now = dead.created_at;
    assert_eq!(
        rig.stores.outbox.resend(dead.message.id, now).await,
        Ok(true)
    );
    let mut texts = rig.answers("c1", 2).await;
    texts.sort();
    assert_eq!(texts, ["Hello.", "Next."]);
}

#[tokio::test]
async fn failing_file_becomes_a_text_and_later_messages_arrive() {
    let rig = Rig::start().await;
    assert_eq!(rig.ask("c1", "then say Hello.").await, "Hello.");
    rig.platform.fail_files();
    let (outbox, account) = (&rig.stores.outbox, Account::new("memory", "bot"));
    let lease = rig.stores.leases.lease(&account).await.unwrap().unwrap();
    let filter = OutgoingFilter {
        limit: 1,
        ..OutgoingFilter::default()
    };
    let sent = outbox.list(&filter).await.unwrap().remove(0);
    let mut body = sent.message.body.clone();
    body["content"] = json!({"text_file": {"name": "a.md", "text": "a"}});
    body["live"] = Value::Null;
    let (id, at) = (Uuid::from_u128(1), sent.created_at);
    let file = NewOutgoing {
        id,
        body,
        ..sent.message
    };
    outbox.enqueue(&lease.claim, vec![file], at).await.unwrap();
    // Four attempts of the past.
    for _ in 0..4 {
        outbox.begin(&lease.claim, id).await.unwrap();
    }
    rig.platform.say("c1", "ann", "then say Next.");
    let texts = rig.answers("c1", 3).await;
    let notice = "The file a.md could not be sent: the upload failed.";
    assert_eq!(texts[0], "Hello.");
    assert!(texts.contains(&"Next.".to_owned()), "{texts:?}");
    assert!(texts.contains(&notice.to_owned()), "{texts:?}");
    assert_eq!(rows(&rig, OutgoingState::Dead).await, 1);
}

#[tokio::test]
async fn another_node_takes_over_and_answers_what_was_received() {
    let rig = Rig::start().await;
    assert_eq!(rig.ask("c1", "then say Hello.").await, "Hello.");
    let (other, tasks) = rig.another_node("n2");
    wait_for_state(&rig, &other, &ChannelState::Elsewhere).await;
    rig.platform
        .say("c1", "ann", "[[slow 100x10ms]] then say Continued.");
    within(rig.platform.wait_for(|platform| {
        platform
            .messages()
            .into_iter()
            .find(|message| !message.is_final)
    }))
    .await;
    rig.tasks.token().cancel();
    within(rig.tasks.shut_down()).await;
    wait_for_state(&rig, &other, &ChannelState::Connected).await;
    assert_eq!(rig.answers("c1", 2).await, ["Hello.", "Continued."]);
    assert_eq!(rig.platform.messages().len(), 2);
    tasks.token().cancel();
    within(tasks.shut_down()).await;
}

#[tokio::test]
async fn closed_lane_stays_closed_on_the_next_node() {
    let rig = Rig::start().await;
    rig.platform.fail([PlatformError::RateLimited {
        retry_after: Duration::from_secs(3_600),
        account: false,
    }]);
    let account = Account::new("memory", "bot");
    rig.platform.say("c1", "ann", "/help");
    let closed = async {
        let outbox = &rig.stores.outbox;
        while outbox
            .closed_lanes(&account, DateTime::UNIX_EPOCH)
            .await
            .unwrap()
            .is_empty()
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(closed).await;
    rig.tasks.token().cancel();
    within(rig.tasks.shut_down()).await;
    let (other, tasks) = rig.another_node("n2");
    wait_for_state(&rig, &other, &ChannelState::Connected).await;
    rig.platform
        .say("c1", "ann", "[[slow 20x5ms]] then say one two three");
    let answered = async {
        while rows(&rig, OutgoingState::Pending).await < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(answered).await;
    assert_eq!(rig.ask("c2", "then say Hello.").await, "Hello.");
    let chats = rig.platform.messages();
    assert!(
        chats.iter().all(|message| message.chat == "c2"),
        "{chats:?}"
    );
    tasks.token().cancel();
    within(tasks.shut_down()).await;
}

#[tokio::test]
async fn live_message_without_a_record_is_completed() {
    let rig = Rig::start().await;
    let row = begun_by_another_node(&rig).await;
    rig.platform.begin_live(row, "c1", "Someth");
    let (_service, tasks) = rig.another_node("n2");
    rig.answers("c1", 2).await;
    let messages = rig.platform.messages();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[1].is_final && messages[1].text == messages[0].text);
    tasks.token().cancel();
    within(tasks.shut_down()).await;
}

#[tokio::test]
async fn resumed_answer_prepares_its_live_message() {
    let platform = MemoryPlatform::default().preparing();
    let (config, home) = (config(json!({}), json!({})), tempfile::tempdir().unwrap());
    let rig = Rig::over(config, home, platform, InMemoryChannels::stores()).await;
    begun_by_another_node(&rig).await;
    let (_service, tasks) = rig.another_node("n2");
    rig.answers("c1", 2).await;
    assert_eq!(rig.platform.unprepared(), 0);
    assert_eq!(rig.platform.messages().len(), 2);
    tasks.token().cancel();
    within(tasks.shut_down()).await;
}

/// Answers a message, and stores another one whose answer a node began before it died. Returns its
/// row.
async fn begun_by_another_node(rig: &Rig) -> Uuid {
    let ask = "[[error 400]] then say never";
    rig.ask("c1", ask).await;
    rig.tasks.token().cancel();
    within(rig.tasks.shut_down()).await;
    let account = Account::new("memory", "bot");
    let (leases, inbox) = (&rig.stores.leases, &rig.stores.inbox);
    let first = inbox.list(&one()).await.unwrap().remove(0);
    let at = first.received_at;
    let lease = Duration::from_millis(1);
    let claim = leases.acquire(&account, "n0", lease, at + TimeDelta::hours(1));
    let claim = claim.await.unwrap().unwrap();
    let key = MessageKey {
        message: "77".to_owned(),
        ..first.key
    };
    let row = key.id();
    let message = NewInboxMessage {
        key,
        conversation: first.conversation,
        urgency: first.urgency,
        event: first.event,
    };
    let batch = InboxBatch {
        messages: vec![message],
        cursor: None,
    };
    let accepted = inbox.accept(&claim, batch, InboxLimits::default(), at);
    assert_eq!(accepted.await, Ok(vec![Acceptance::Stored]));
    inbox.begin(&claim, &[row]).await.unwrap();
    leases.release(&claim, at).await.unwrap();
    row
}

fn one() -> InboxFilter {
    InboxFilter {
        limit: 1,
        ..InboxFilter::default()
    }
}

#[tokio::test]
async fn channel_follows_its_configuration() {
    let rig = Rig::start().await;
    assert_eq!(rig.ask("c1", "then say Hello.").await, "Hello.");
    rig.configure(config(json!({"enabled": false}), json!({})));
    wait_for_state(&rig, &rig.service, &ChannelState::Off).await;
    rig.configure(config(json!({"token": ""}), json!({})));
    let failed = "channels.memory.token: is missing".to_owned();
    wait_for_state(&rig, &rig.service, &ChannelState::Failed(failed)).await;
    rig.service
        .configure(
            "memory",
            [("token".to_owned(), "entered".to_owned())].into(),
        )
        .await
        .unwrap();
    assert_eq!(
        rig.service.statuses().await[0].state,
        ChannelState::Connected
    );
    assert_eq!(rig.ask("c1", "then say Again.").await, "Again.");
    let stored = rig.stores.credentials.all().await.unwrap().remove(0);
    assert!(!stored.sealed.contains("entered"));
    assert_eq!(
        rig.service.credentials("memory").await.unwrap()["token"],
        "entered"
    );
    rig.service.restart("memory").await.unwrap();
    assert_eq!(rig.ask("c1", "then say Restarted.").await, "Restarted.");
}
