//! Messages become runs, and runs become answers.

use deerflow_domain::channels::{InboxFilter, InboxState};
use harness::runtime::actor_context::{ActorContext, scope};
use serde_json::json;

use super::rig::{Rig, within};
use crate::platform::{EventBody, IncomingFile};

#[tokio::test]
async fn message_is_answered_by_the_agent() {
    let rig = Rig::start().await;
    assert_eq!(rig.ask("c1", "then say Hello.").await, "Hello.");
    let thread = rig.threads.0.lock()[0].clone();
    assert_eq!(
        json!(thread.metadata),
        json!({"channel_source": {"type": "im_channel", "provider": "memory", "chat_id": "c1"}})
    );
    let filter = InboxFilter {
        limit: 9,
        ..InboxFilter::default()
    };
    assert_eq!(
        rig.stores.inbox.list(&filter).await.unwrap()[0].state,
        InboxState::Answered
    );
}

#[tokio::test]
async fn answer_grows_in_one_message() {
    let rig = Rig::start().await;
    rig.platform.say(
        "c1",
        "ann",
        "[[slow 20x5ms]] then say one two three four five",
    );
    rig.answers("c1", 1).await;
    let messages = rig.platform.messages();
    assert_eq!(messages.len(), 1);
    assert!(messages[0].versions > 3, "{}", messages[0].versions);
    assert!(messages[0].buttons.is_empty());
}

#[tokio::test]
async fn redelivered_message_is_answered_once() {
    let rig = Rig::start().await;
    let event = rig.platform.message("c1", "ann", "then say Once.");
    for _ in 0..3 {
        rig.platform.deliver(event.clone());
    }
    rig.answers("c1", 1).await;
    rig.platform.deliver(event);
    assert_eq!(rig.ask("c1", "then say Next.").await, "Next.");
    assert_eq!(rig.platform.texts("c1"), ["Once.", "Next."]);
}

#[tokio::test]
async fn failed_run_is_answered_with_words() {
    let rig = Rig::start().await;
    let answer = rig.ask("c1", "[[error 400]] then say never").await;
    assert!(!answer.contains("never") && !answer.is_empty(), "{answer}");
}

#[tokio::test]
async fn stop_button_ends_the_answer_and_keeps_its_text() {
    let rig = Rig::start().await;
    rig.platform.say(
        "c1",
        "ann",
        "[[slow 2000x20ms]] then say a very long text that never ends",
    );
    let message = within(rig.platform.wait_for(|platform| {
        let message = platform.messages().into_iter().next()?;
        (message.versions > 3).then_some(message)
    }))
    .await;
    rig.platform.press("mallory", &message, 0);
    within(
        rig.platform
            .wait_for(|platform| (platform.confirmed().len() == 1).then_some(())),
    )
    .await;
    assert!(rig.platform.texts("c1").is_empty());
    rig.platform.press("ann", &message, 0);
    let answers = rig.answers("c1", 1).await;
    assert!(answers[0].ends_with("Stopped."), "{answers:?}");
    assert!(answers[0].starts_with('a'), "{answers:?}");
}

#[tokio::test]
async fn stop_command_is_not_queued() {
    let rig = Rig::start().await;
    rig.platform
        .say("c1", "ann", "[[slow 2000x20ms]] then say a very long text");
    within(
        rig.platform
            .wait_for(|platform| platform.messages().into_iter().next()),
    )
    .await;
    rig.platform.say("c1", "ann", "/stop");
    let answers = rig.answers("c1", 1).await;
    assert!(answers[0].ends_with("Stopped."), "{answers:?}");
    assert_eq!(rig.ask("c2", "/stop").await, crate::words::NOTHING_TO_STOP);
}

#[tokio::test]
async fn stop_command_ends_the_download_of_files() {
    let rig = Rig::start().await;
    let mut event = rig.platform.message("c1", "ann", "then say Read.");
    if let EventBody::Message(message) = &mut event.body {
        message.files.push(IncomingFile {
            name: Some("a.txt".to_owned()),
            media_type: None,
            size: None,
            reference: json!({"endless": true}),
        });
    }
    rig.platform.deliver(event);
    within(
        rig.platform
            .wait_for(|platform| (platform.endless_downloads() > 0).then_some(())),
    )
    .await;
    rig.platform.say("c1", "mallory", "/stop");
    assert_eq!(rig.answers("c1", 1).await, [crate::words::NOT_YOURS]);
    rig.platform.say("c1", "ann", "/stop");
    let answers = rig.answers("c1", 2).await;
    assert_eq!(answers[1], crate::words::STOPPED);
    let thread = rig.threads.0.lock()[0].clone();
    let actor = ActorContext::user(thread.user_id.unwrap_or_default());
    let view = scope(actor, rig.client.get_thread(&thread.thread_id)).await;
    assert!(view.unwrap().is_none(), "a run was created");
    assert_eq!(rig.ask("c1", "then say Next.").await, "Next.");
}

#[tokio::test]
async fn stop_command_ends_files_that_a_text_may_follow() {
    let rig = Rig::start().await;
    let mut event = rig.platform.message("c1", "ann", "");
    if let EventBody::Message(message) = &mut event.body {
        message.files.push(IncomingFile {
            name: Some("a.txt".to_owned()),
            media_type: None,
            size: None,
            reference: json!({}),
        });
    }
    rig.platform.deliver(event);
    rig.platform.say("c1", "mallory", "/stop");
    assert_eq!(rig.answers("c1", 1).await, [crate::words::NOTHING_TO_STOP]);
    rig.platform.say("c1", "ann", "/stop");
    let answers = rig.answers("c1", 2).await;
    assert_eq!(answers[1], crate::words::STOPPED);
    assert_eq!(rig.ask("c1", "then say Next.").await, "Next.");
    assert_eq!(rig.platform.texts("c1").len(), 3);
    let filter = InboxFilter {
        limit: 9,
        ..InboxFilter::default()
    };
    let rows = rig.stores.inbox.list(&filter).await.unwrap();
    let files = rows.last().unwrap();
    assert_eq!((files.state, files.claims), (InboxState::Answered, 0));
}

#[tokio::test]
async fn clarification_is_answered_by_its_button() {
    let rig = Rig::start().await;
    let call = json!({"question": "Which colour?", "options": ["red", "green"], "clarification_type": "approach_choice"});
    rig.platform.say(
        "c1",
        "ann",
        &format!("[[tool:ask_clarification {call}]] then say Painted."),
    );
    let asked = within(rig.platform.wait_for(|platform| {
        platform
            .messages()
            .into_iter()
            .find(|message| message.is_final)
    }))
    .await;
    assert!(asked.text.contains("Which colour?"), "{}", asked.text);
    assert_eq!(asked.buttons.len(), 2);
    rig.platform.press("mallory", &asked, 1);
    rig.platform.press("ann", &asked, 1);
    let answers = rig.answers("c1", 2).await;
    assert!(!answers[1].is_empty());
    assert_eq!(rig.platform.confirmed(), [crate::words::NOT_YOURS, "green"]);
}
