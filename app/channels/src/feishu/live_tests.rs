//! Live updates against the fake.

use chrono::TimeDelta;
use deerflow_chat_platforms::common::Fault;
use serde_json::json;

use crate::feishu::setup::{Setup, delivery, live_reply, part, text_message};
use crate::platform::{Button, Content, LiveReply, OutgoingMessage, PlatformError, Target};

const CONTENT: &str = "PUT cardkit/v1/cards/elements/content";
const SETTINGS: &str = "PATCH cardkit/v1/cards/settings";
const PATCH: &str = "PATCH im/v1/messages";

fn completing(reply: &LiveReply, text: &str) -> OutgoingMessage {
    OutgoingMessage {
        live: reply.state.clone(),
        ..text_message(&reply.target, text)
    }
}

async fn complete(setup: &Setup, reply: &LiveReply, text: &str) -> Vec<String> {
    let message = completing(reply, text);
    let mut delivery = delivery(1);
    let sent = setup.platform.send(&message, None, &mut delivery).await;
    sent.unwrap().ids
}

async fn started(setup: &Setup, target: &Target) -> LiveReply {
    let mut reply = live_reply(target);
    setup.platform.update_live(&mut reply, "Hel").await.unwrap();
    reply
}

#[tokio::test]
async fn streaming_card_shows_updates_and_ends() {
    let setup = Setup::start().await;
    let mut reply = started(&setup, &setup.target()).await;
    assert_eq!(setup.shown(), ["Hel"]);
    setup
        .platform
        .update_live(&mut reply, "Hello")
        .await
        .unwrap();
    let ids = complete(&setup, &reply, "Hello **world**").await;
    assert_eq!(ids, [setup.fake.sent()[0].message_id.clone()]);
    assert_eq!(setup.shown(), ["Hello **world**"]);
    let card = &setup.fake.cards()[0];
    assert_eq!(card.updates, ["Hel", "Hello", "Hello **world**"]);
    assert!(!card.streaming);
}

#[tokio::test]
async fn retry_of_a_lost_completion_continues_the_sequence() {
    let setup = Setup::start().await;
    let reply = started(&setup, &setup.target()).await;
    setup.fake.faults().script(CONTENT, [Fault::LoseReply]);
    let message = completing(&reply, "Hello");
    let mut delivery = delivery(1);
    let result = setup.platform.send(&message, None, &mut delivery).await;
    assert!(matches!(result, Err(PlatformError::Unavailable(_))));
    delivery.attempt = 2;
    let result = setup.platform.send(&message, None, &mut delivery).await;
    assert!(result.is_ok());
    assert_eq!(setup.shown(), ["Hello"]);
    let errors: Vec<i64> = setup
        .fake
        .calls()
        .all()
        .iter()
        .map(|call| call.error)
        .collect();
    assert!(errors.iter().all(|error| *error == 0), "{errors:?}");
}

#[tokio::test]
async fn stale_sequence_of_a_dead_process_is_passed() {
    let setup = Setup::start().await;
    let mut reply = started(&setup, &setup.target()).await;
    let stale = reply.clone();
    for text in ["Hell", "Hello", "Hello w"] {
        setup.platform.update_live(&mut reply, text).await.unwrap();
    }
    let other = setup.again();
    let message = completing(&stale, "Hello world");
    other.send(&message, None, &mut delivery(1)).await.unwrap();
    assert_eq!(setup.shown(), ["Hello world"]);
    assert!(!setup.fake.cards()[0].streaming);
}

#[tokio::test]
async fn lost_reply_of_the_card_message_shows_one_card() {
    let setup = Setup::start().await;
    let mut reply = live_reply(&setup.target());
    setup
        .fake
        .faults()
        .script("POST im/v1/messages/reply", [Fault::LoseReply]);
    let result = setup.platform.update_live(&mut reply, "Hel").await;
    assert!(matches!(result, Err(PlatformError::Unavailable(_))));
    setup
        .platform
        .update_live(&mut reply, "Hello")
        .await
        .unwrap();
    assert_eq!(setup.shown(), ["Hello"]);
}

#[tokio::test]
async fn missing_scope_selects_patched_cards_for_good() {
    let setup = Setup::start().await;
    setup.fake.remove_scope("cardkit:card:write");
    let target = setup.target();
    let mut reply = started(&setup, &target).await;
    setup.clock.advance(TimeDelta::seconds(1));
    setup
        .platform
        .update_live(&mut reply, "Hello")
        .await
        .unwrap();
    assert_eq!(setup.shown(), ["Hello"]);
    complete(&setup, &reply, "Hello world").await;
    assert_eq!(setup.shown(), ["Hello world"]);
    let mut second = live_reply(&target);
    second.key = uuid::Uuid::from_u128(78);
    setup.platform.update_live(&mut second, "x").await.unwrap();
    assert_eq!(setup.fake.calls().of("POST cardkit/v1/cards").len(), 1);
    let identity = setup.platform.identify().await.unwrap();
    assert!(identity.warnings[0].contains("cardkit:card:write"));
}

#[tokio::test]
async fn ended_streaming_mode_is_switched_on_again() {
    let setup = Setup::start().await;
    let mut reply = started(&setup, &setup.target()).await;
    setup.fake.end_streaming();
    setup
        .platform
        .update_live(&mut reply, "Hello")
        .await
        .unwrap();
    assert_eq!(setup.shown(), ["Hello"]);
    assert_eq!(setup.fake.calls().of(SETTINGS).len(), 1);
    setup.clock.advance(TimeDelta::minutes(10));
    setup.fake.end_streaming();
    setup
        .platform
        .update_live(&mut reply, "Hello w")
        .await
        .unwrap();
    assert_eq!(setup.shown(), ["Hello w"]);
    let refused = setup.fake.calls().of(CONTENT);
    assert_eq!(refused.iter().filter(|call| call.error != 0).count(), 1);
}

/// Refuses the next two texts of streaming cards.
fn refuse_texts(setup: &Setup) {
    let refusal = || Fault::Answer {
        status: 400,
        body: json!({"code": 200_740, "msg": "card is gone"}),
        headers: std::collections::HashMap::new(),
    };
    setup.fake.faults().script(CONTENT, [refusal(), refusal()]);
}

#[tokio::test]
async fn unusable_streaming_card_is_patched_by_the_next_update() {
    let setup = Setup::start().await;
    let mut reply = started(&setup, &setup.target()).await;
    refuse_texts(&setup);
    let refused = setup.platform.update_live(&mut reply, "Hello").await;
    assert!(matches!(refused, Err(PlatformError::LiveExpired(_))));
    assert_eq!(setup.shown(), ["Hel"]);
    let repeated = setup.platform.update_live(&mut reply, "Hello").await;
    assert_eq!(
        (repeated, setup.shown()),
        (Ok(()), vec!["Hello".to_owned()])
    );
    assert_eq!(setup.fake.calls().of(PATCH).len(), 1);
    complete(&setup, &reply, "Hello world").await;
    assert_eq!(setup.shown(), ["Hello world"]);
}

#[tokio::test]
async fn unusable_card_whose_state_was_lost_shows_the_final_text() {
    let setup = Setup::start().await;
    let reply = started(&setup, &setup.target()).await;
    refuse_texts(&setup);
    let mut lost = reply.clone();
    let refused = setup.platform.update_live(&mut lost, "Hello").await;
    assert!(refused.is_err());
    complete(&setup, &reply, "Hello world").await;
    assert_eq!(setup.shown(), ["Hello world"]);
}

#[tokio::test]
async fn final_text_becomes_a_new_message_if_the_card_is_lost() {
    let setup = Setup::start().await;
    setup.fake.remove_scope("cardkit:card:write");
    let reply = started(&setup, &setup.target()).await;
    let lost = setup.fake.sent()[0].message_id.clone();
    setup.fake.lose_message(&lost, 230_011);
    let ids = complete(&setup, &reply, "Hello world").await;
    assert_ne!(ids, [lost]);
    assert_eq!(setup.shown(), ["Hel", "Hello world"]);
}

#[tokio::test]
async fn live_text_continues_in_a_new_message_if_the_card_is_lost() {
    let setup = Setup::start().await;
    setup.fake.remove_scope("cardkit:card:write");
    let mut reply = started(&setup, &setup.target()).await;
    for generation in 1..3 {
        let lost = setup.fake.sent().last().unwrap().message_id.clone();
        setup.fake.lose_message(&lost, 230_011);
        let text = format!("Hello {generation}");
        setup.platform.update_live(&mut reply, &text).await.unwrap();
    }
    assert_eq!(setup.shown(), ["Hel", "Hello 1", "Hello 2"]);
    let lost = setup.fake.sent().last().unwrap().message_id.clone();
    setup.fake.lose_message(&lost, 230_011);
    let result = setup.platform.update_live(&mut reply, "x").await;
    assert!(matches!(result, Err(PlatformError::LiveExpired(_))));
}

#[tokio::test]
async fn refused_markup_of_the_final_text_is_shown_as_plain_text() {
    let setup = Setup::start().await;
    let reply = started(&setup, &setup.target()).await;
    setup.fake.refuse_content("**world", 230_099);
    complete(&setup, &reply, "Hello **world**").await;
    assert_eq!(setup.shown(), ["Hello world"]);
    assert!(!setup.fake.cards()[0].streaming);
}

#[tokio::test]
async fn stop_button_is_on_patched_cards_until_the_end() {
    let setup = Setup::start().await;
    setup.fake.remove_scope("cardkit:card:write");
    let mut reply = live_reply(&setup.target());
    reply.stop = Some(Button {
        label: "Stop".to_owned(),
        data: "stop:1".to_owned(),
    });
    setup.platform.update_live(&mut reply, "Hel").await.unwrap();
    assert!(setup.fake.sent()[0].content.contains(r#""d":"stop:1""#));
    complete(&setup, &reply, "Hello").await;
    assert!(!setup.fake.sent()[0].content.contains("stop:1"));
}

#[tokio::test]
async fn question_with_buttons_completes_a_streaming_card() {
    let setup = Setup::start().await;
    let reply = started(&setup, &setup.target()).await;
    let buttons = vec![Button {
        label: "Allow".to_owned(),
        data: "yes:1".to_owned(),
    }];
    let text = part("May I?");
    let message = OutgoingMessage {
        content: Content::Buttons { text, buttons },
        ..completing(&reply, "")
    };
    let sent = setup.platform.send(&message, None, &mut delivery(1)).await;
    let message = &setup.fake.sent()[0];
    assert_eq!(sent.unwrap().ids, std::slice::from_ref(&message.message_id));
    assert!(message.content.contains("yes:1"));
    assert!(!setup.fake.cards()[0].streaming);
    assert_eq!(setup.shown(), ["May I?"]);
}

#[tokio::test]
async fn card_whose_message_is_not_recorded_is_completed() {
    for fault in [Fault::Drop, Fault::LoseReply] {
        let setup = Setup::start().await;
        let mut reply = live_reply(&setup.target());
        setup.platform.prepare_live(&mut reply).await.unwrap();
        let stored = reply.clone();
        let method = "POST im/v1/messages/reply";
        setup.fake.faults().script(method, [fault]);
        let result = setup.platform.update_live(&mut reply, "Hel").await;
        assert!(matches!(result, Err(PlatformError::Unavailable(_))));
        complete(&setup, &stored, "Hello").await;
        assert_eq!(setup.shown(), ["Hello"]);
        assert_eq!(setup.fake.cards().len(), 1);
    }
}

#[tokio::test]
async fn stop_button_is_on_streaming_cards_until_the_end() {
    for is_removable in [true, false] {
        let setup = Setup::start().await;
        let mut reply = live_reply(&setup.target());
        reply.stop = Some(Button {
            label: "Stop".to_owned(),
            data: "stop:1".to_owned(),
        });
        setup.platform.update_live(&mut reply, "Hel").await.unwrap();
        assert_eq!(setup.shown(), ["Hel\nStop"]);
        let button = setup.fake.cards()[0].data["body"]["elements"][1].clone();
        assert_eq!(button["behaviors"][0]["value"]["d"], "stop:1");
        let missing = Fault::Answer {
            status: 404,
            body: json!({"code": 404, "msg": "404 page not found"}),
            headers: std::collections::HashMap::new(),
        };
        let method = "DELETE cardkit/v1/cards/elements";
        let faults = if is_removable { vec![] } else { vec![missing] };
        setup.fake.faults().script(method, faults);
        complete(&setup, &reply, "Hello").await;
        assert_eq!(setup.shown(), ["Hello"]);
        assert!(!setup.fake.cards()[0].streaming);
        let patches = setup.fake.calls().of(PATCH).len();
        assert_eq!(patches, usize::from(!is_removable));
    }
}

#[tokio::test]
async fn many_updates_leave_an_edit_for_the_final_text() {
    let setup = Setup::start().await;
    setup.fake.remove_scope("cardkit:card:write");
    let mut reply = started(&setup, &setup.target()).await;
    for number in 0..200 {
        setup.clock.advance(TimeDelta::seconds(2));
        let text = format!("Hello {number}");
        setup.fake.forget_limits();
        setup.platform.update_live(&mut reply, &text).await.unwrap();
    }
    setup.fake.forget_limits();
    complete(&setup, &reply, "Hello world").await;
    assert_eq!(setup.shown(), ["Hello world"]);
    assert_eq!(setup.fake.sent()[0].edits, 19);
}

#[tokio::test]
async fn rate_limit_of_an_update_names_the_delay() {
    let setup = Setup::start().await;
    let mut reply = started(&setup, &setup.target()).await;
    let fault = Fault::RateLimited {
        retry_after: 7.0,
        silent: false,
    };
    setup.fake.faults().script(CONTENT, [fault]);
    let result = setup.platform.update_live(&mut reply, "Hello").await;
    let expected = PlatformError::RateLimited {
        retry_after: std::time::Duration::from_secs(7),
        account: true,
    };
    assert_eq!(result, Err(expected));
    setup
        .platform
        .update_live(&mut reply, "Hello")
        .await
        .unwrap();
    assert_eq!(setup.shown(), ["Hello"]);
}
