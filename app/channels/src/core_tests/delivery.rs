//! Sending, retries and the change of nodes.

use std::time::Duration;

use deerflow_domain::channels::{ChannelRuntime, ChannelState, OutgoingFilter, OutgoingState};
use serde_json::json;

use super::rig::{Rig, config, within};
use crate::platform::PlatformError;

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
