//! Tests of messages, buttons, receipts and the identity against the fake.

use std::collections::HashMap;
use std::time::Duration;

use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::slack::DuplicateAnswer;
use serde_json::{Value, json};

use super::super::fixtures::{
    Sink, adapter, adapter_with, delivery, fake, message, part, target, while_listening,
};
use super::super::links::Timing;
use crate::platform::{
    Button, Content, EventBody, OutgoingMessage, Platform, PlatformError, PlatformFactory, Receipt,
    Settings,
};

fn text(channel: &str, ts: &str, words: &str) -> OutgoingMessage {
    let content = Content::Text(part(words, words));
    message(target(channel, ts), content, Value::Null)
}

fn question(channel: &str, ts: &str) -> OutgoingMessage {
    let buttons = ["yes", "no"].map(|data| Button {
        label: data.to_uppercase(),
        data: data.to_owned(),
    });
    let content = Content::Buttons {
        text: part("*Really?*", "Really?"),
        buttons: buttons.to_vec(),
    };
    message(target(channel, ts), content, Value::Null)
}

fn refusal(code: &str) -> Fault {
    Fault::Answer {
        status: 200,
        body: json!({"ok": false, "error": code}),
        headers: HashMap::new(),
    }
}

#[tokio::test]
async fn answer_is_posted_in_the_thread_of_its_message() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    for channel in ["C1", "DU1"] {
        let ts = match channel {
            "C1" => fake.mention("C1", "U1", "hello"),
            _ => fake.say_dm("U1", "hello"),
        };
        let message = text(channel, &ts, "a &lt;b&gt;");
        let sent = platform
            .send(&message, None, &mut delivery(1, 1))
            .await
            .unwrap();
        let answers = fake.answers(channel);
        assert_eq!(answers.len(), 1);
        assert_eq!(sent.ids, [answers[0].ts.clone()]);
        assert_eq!(answers[0].thread_ts.as_ref(), Some(&ts));
        assert_eq!(answers[0].text, "a &lt;b&gt;");
    }
    let body = &fake.calls().of("chat.postMessage")[0].body;
    assert_eq!(
        body["client_msg_id"],
        "00000000-0000-0000-0000-000000000001"
    );
    assert_eq!(
        (&body["unfurl_links"], &body["unfurl_media"]),
        (&json!(false), &json!(false))
    );
}

#[tokio::test]
async fn post_whose_reply_was_lost_is_not_repeated() {
    for duplicates in [
        DuplicateAnswer::Existing,
        DuplicateAnswer::NotFound,
        DuplicateAnswer::Ignored,
    ] {
        let fake = fake(|options| options.duplicates = duplicates).await;
        let platform = adapter(&fake);
        let ts = fake.mention("C1", "U1", "hello");
        let message = text("C1", &ts, "answer");
        fake.faults().script("chat.postMessage", [Fault::LoseReply]);
        let error = platform
            .send(&message, None, &mut delivery(1, 1))
            .await
            .unwrap_err();
        assert!(matches!(error, PlatformError::Unavailable(_)));
        let sent = platform
            .send(&message, None, &mut delivery(1, 2))
            .await
            .unwrap();
        let answers = fake.answers("C1");
        assert_eq!(answers.len(), 1, "{duplicates:?}");
        assert_eq!(sent.ids, [answers[0].ts.clone()]);
    }
}

#[tokio::test]
async fn used_key_of_a_lost_message_counts_as_sent() {
    let fake = fake(|options| {
        options.duplicates = DuplicateAnswer::NotFound;
        options.scopes.retain(|scope| !scope.ends_with(":history"));
    })
    .await;
    let platform = adapter(&fake);
    let ts = fake.mention("C1", "U1", "hello");
    let message = text("C1", &ts, "answer");
    fake.faults().script("chat.postMessage", [Fault::LoseReply]);
    platform
        .send(&message, None, &mut delivery(1, 1))
        .await
        .unwrap_err();
    let sent = platform
        .send(&message, None, &mut delivery(1, 2))
        .await
        .unwrap();
    assert!(sent.ids.is_empty());
    assert_eq!(fake.answers("C1").len(), 1);
}

#[tokio::test]
async fn deleted_thread_is_answered_in_its_channel() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let ts = fake.mention("C1", "U1", "hello");
    fake.delete("C1", &ts);
    let message = text("C1", &ts, "answer");
    platform
        .send(&message, None, &mut delivery(1, 1))
        .await
        .unwrap();
    assert_eq!(fake.answers("C1")[0].thread_ts, None);
}

#[tokio::test]
async fn failures_have_their_meaning() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let ts = fake.mention("C1", "U1", "hello");
    let message = text("C1", &ts, "answer");
    let send = async || {
        let mut delivery = delivery(1, 1);
        platform
            .send(&message, None, &mut delivery)
            .await
            .unwrap_err()
    };
    let limited = Fault::RateLimited {
        retry_after: 33.0,
        silent: false,
    };
    fake.faults().script("chat.postMessage", [limited]);
    let retry_after = Duration::from_secs(33);
    let expected = PlatformError::RateLimited {
        retry_after,
        account: false,
    };
    assert_eq!(send().await, expected);
    for code in ["msg_too_long", "restricted_action", "strange"] {
        fake.faults().script("chat.postMessage", [refusal(code)]);
        assert!(matches!(send().await, PlatformError::Refused(_)), "{code}");
    }
    fake.faults()
        .script("chat.postMessage", [refusal("token_revoked")]);
    assert!(matches!(send().await, PlatformError::Rejected(_)));
    fake.faults().script("chat.postMessage", [Fault::Drop]);
    assert!(matches!(send().await, PlatformError::Unavailable(_)));
    fake.set_channel("C1", false, false);
    assert!(send().await.to_string().contains("invite"));
    fake.set_channel("C1", true, true);
    assert!(send().await.to_string().contains("archived"));
    assert!(fake.answers("C1").is_empty());
}

#[tokio::test]
async fn pressed_button_returns_its_data() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let sink = Sink::new();
    let body = async {
        sink.connected().await;
        let ts = fake.mention("C1", "U1", "hello");
        let sent = platform
            .send(&question("C1", &ts), None, &mut delivery(1, 1))
            .await
            .unwrap();
        assert!(fake.press("C1", &sent.ids[0], "no", "U1"));
        (ts, sent.ids[0].clone(), sink.stored(2).await)
    };
    let ((ts, asked, events), _) = while_listening(&platform, &sink, None, body).await;
    let press = events
        .iter()
        .find(|event| event.id.starts_with("press:"))
        .unwrap();
    let EventBody::Press(pressed) = &press.body else {
        panic!("not a press");
    };
    assert_eq!(
        (pressed.data.as_str(), pressed.message.as_ref()),
        ("no", Some(&asked))
    );
    assert_eq!(press.context, json!({"team": "T1", "thread": ts}));
}

#[tokio::test]
async fn refused_blocks_become_text() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let ts = fake.mention("C1", "U1", "hello");
    fake.faults()
        .script("chat.postMessage", [refusal("invalid_blocks")]);
    platform
        .send(&question("C1", &ts), None, &mut delivery(1, 1))
        .await
        .unwrap();
    let answers = fake.answers("C1");
    assert_eq!(answers[0].text, "*Really?*\n• YES\n• NO");
    assert!(answers[0].blocks.is_empty());
}

#[tokio::test]
async fn receipts_are_reactions() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let ts = fake.mention("C1", "U1", "hello");
    let asked = target("C1", &ts);
    for receipt in [
        Receipt::Received,
        Receipt::Received,
        Receipt::Working,
        Receipt::Done,
        Receipt::Failed,
    ] {
        platform.show(&asked, receipt).await.unwrap();
    }
    let reactions = &fake.messages("C1")[0].reactions;
    assert_eq!(*reactions, ["eyes", "white_check_mark", "x"]);
    let mut pressed = target("C1", &ts);
    pressed.reply_to = Some("press:1.1:U1".to_owned());
    platform.show(&pressed, Receipt::Done).await.unwrap();
    assert_eq!(fake.calls().of("reactions.add").len(), 4);
}

#[tokio::test]
async fn confirmation_of_a_press_is_for_its_person_only() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let ts = fake.mention("C1", "U1", "hello");
    platform
        .confirm_press(&target("C1", &ts), "")
        .await
        .unwrap();
    platform
        .confirm_press(&target("C1", &ts), "not <yours>")
        .await
        .unwrap();
    let calls = fake.calls().of("chat.postEphemeral");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].body["text"], "not &lt;yours&gt;");
    assert_eq!(calls[0].body["user"], "U1");
}

#[tokio::test]
async fn identity_names_missing_scopes() {
    let fake = fake(|_| {}).await;
    let identity = adapter(&fake).identify().await.unwrap();
    assert_eq!(
        (identity.account.as_str(), identity.name.as_str()),
        ("T1:UBOT", "deerflow")
    );
    assert!(identity.warnings.is_empty(), "{:?}", identity.warnings);
    fake.configure(|options| options.scopes.retain(|scope| scope != "files:read"));
    let identity = adapter(&fake).identify().await.unwrap();
    assert_eq!(identity.warnings.len(), 1);
    assert!(identity.warnings[0].contains("files:read"));
    let platform = adapter_with(&fake, Timing::default(), ("xoxp-1", "xapp-1"));
    assert!(matches!(
        platform.identify().await,
        Err(PlatformError::Rejected(_))
    ));
}

#[tokio::test]
async fn factory_checks_settings_and_hides_tokens() {
    let factory = super::super::SlackFactory;
    let context = crate::platform::PlatformContext {
        http: reqwest::Client::builder().build().unwrap(),
        clock: std::sync::Arc::new(harness::clock::SystemClock),
    };
    let build = |settings: Value| {
        let Value::Object(settings) = settings else {
            panic!("not an object");
        };
        factory.build(&Settings(settings), &context)
    };
    let platform = build(json!({"bot_token": "xoxb-canary", "app_token": "xapp-canary"})).unwrap();
    assert!(!format!("{platform:?}").contains("canary"));
    for (settings, key) in [
        (json!({"app_token": "xapp-1"}), "bot_token"),
        (
            json!({"bot_token": "xoxb-1", "app_token": " "}),
            "app_token",
        ),
        (
            json!({"bot_token": "x", "app_token": "x", "api_base": "http://slack.example/api"}),
            "api_base",
        ),
    ] {
        assert_eq!(build(settings).unwrap_err().key, key);
    }
    let names: Vec<&str> = factory.fields().iter().map(|field| field.name).collect();
    assert_eq!(
        (factory.provider(), names),
        ("slack", vec!["bot_token", "app_token"])
    );
}
