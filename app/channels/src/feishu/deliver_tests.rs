//! Delivery against the fake.

use std::time::Duration;

use deerflow_chat_platforms::common::Fault;
use serde_json::json;

use super::*;
use crate::feishu::setup::{Setup, delivery, part, target, text_message};
use crate::platform::ChatKind;

const REPLY: &str = "POST im/v1/messages/reply";
const CREATE: &str = "POST im/v1/messages";

async fn sent(setup: &Setup, message: &OutgoingMessage) -> Result<Sent, PlatformError> {
    let mut delivery = delivery(1);
    setup.platform.send(message, None, &mut delivery).await
}

#[tokio::test]
async fn text_is_a_card_that_replies() {
    let setup = Setup::start().await;
    let target = setup.target();
    let result = sent(&setup, &text_message(&target, "**hi**"))
        .await
        .unwrap();
    let message = &setup.fake.sent()[0];
    assert_eq!(result.ids, std::slice::from_ref(&message.message_id));
    assert_eq!(message.parent_id, target.reply_to);
    assert_eq!(
        message.uuid.as_deref(),
        Some("00000000000000000000000000000001")
    );
    let content: Value = serde_json::from_str(&message.content).unwrap();
    let expected = json!({
        "config": {"wide_screen_mode": true, "update_multi": true},
        "elements": [{"tag": "markdown", "content": "**hi**"}],
    });
    assert_eq!(content, expected);
}

#[tokio::test]
async fn reply_in_a_topic_stays_in_the_topic() {
    let setup = Setup::start().await;
    let mut target = setup.target();
    target.topic = Some("omt_1".to_owned());
    sent(&setup, &text_message(&target, "hi")).await.unwrap();
    let calls = setup.fake.calls().of(REPLY);
    assert_eq!(calls[0].body["body"]["reply_in_thread"], true);
}

#[tokio::test]
async fn reply_to_a_lost_message_goes_to_the_chat() {
    let setup = Setup::start().await;
    for code in [230_011, 230_017] {
        let target = setup.target();
        let id = target.reply_to.clone().unwrap();
        setup.fake.lose_message(&id, code);
        let mut delivery = delivery(u128::from(code.unsigned_abs()));
        let message = text_message(&target, "hi");
        setup
            .platform
            .send(&message, None, &mut delivery)
            .await
            .unwrap();
    }
    assert_eq!(setup.fake.calls().of(CREATE).len(), 2);
    setup.fake.leave("oc_1");
    let result = sent(&setup, &text_message(&setup.target(), "hi")).await;
    assert!(
        matches!(result, Err(PlatformError::Refused(_))),
        "{result:?}"
    );
}

#[tokio::test]
async fn refused_markup_is_sent_as_plain_text() {
    let setup = Setup::start().await;
    setup.fake.refuse_content("**", 230_099);
    let message = text_message(&setup.target(), "**hi** <at user_id=\"all\"></at>");
    sent(&setup, &message).await.unwrap();
    let message = &setup.fake.sent()[0];
    assert_eq!(message.msg_type, "text");
    assert!(!message.content.contains("<at"));
    assert!(message.uuid.as_deref().unwrap().ends_with("-t"));
}

#[tokio::test]
async fn body_above_the_limit_of_cards_is_sent_as_plain_text() {
    let setup = Setup::start().await;
    let text = "\"\n".repeat(7_000);
    sent(&setup, &text_message(&setup.target(), &text))
        .await
        .unwrap();
    assert_eq!(setup.fake.sent()[0].msg_type, "text");
    assert_eq!(setup.fake.calls().of(REPLY).len(), 1);
}

#[tokio::test]
async fn buttons_carry_their_data() {
    let setup = Setup::start().await;
    let buttons = vec![Button {
        label: "Allow".to_owned(),
        data: "yes:1".to_owned(),
    }];
    for kind in [ChatKind::Direct, ChatKind::Group] {
        setup.fake.add_chat("oc_9", kind == ChatKind::Direct);
        let message = OutgoingMessage {
            content: Content::Buttons {
                text: part("May I?"),
                buttons: buttons.clone(),
            },
            ..text_message(&target("oc_9", kind, None), "")
        };
        let mut delivery = delivery(kind as u128);
        setup
            .platform
            .send(&message, None, &mut delivery)
            .await
            .unwrap();
    }
    let value = |at: usize| {
        let content: Value = serde_json::from_str(&setup.fake.sent()[at].content).unwrap();
        content["elements"][1]["actions"][0]["value"].clone()
    };
    assert_eq!(value(0), json!({"d": "yes:1", "k": "p2p"}));
    assert_eq!(value(1), json!({"d": "yes:1"}));
    setup.fake.refuse_content("May I", 230_001);
    let message = OutgoingMessage {
        content: Content::Buttons {
            text: part("May I?"),
            buttons,
        },
        ..text_message(&target("oc_9", ChatKind::Group, None), "")
    };
    setup
        .platform
        .send(&message, None, &mut delivery(9))
        .await
        .unwrap();
    assert_eq!(setup.shown()[2], "May I?\nAllow");
}

#[tokio::test]
async fn rate_limits_are_named_exactly() {
    let setup = Setup::start().await;
    let message = text_message(&setup.target(), "hi");
    let fault = |retry_after, silent| Fault::RateLimited {
        retry_after,
        silent,
    };
    setup
        .fake
        .faults()
        .script(REPLY, [fault(33.0, false), fault(33.0, true)]);
    let limited = |seconds, account| {
        Err(PlatformError::RateLimited {
            retry_after: Duration::from_secs(seconds),
            account,
        })
    };
    assert_eq!(sent(&setup, &message).await, limited(33, true));
    assert_eq!(sent(&setup, &message).await, limited(1, false));
    assert!(sent(&setup, &message).await.is_ok());
}

#[tokio::test]
async fn expired_token_is_renewed_once() {
    let setup = Setup::start().await;
    let message = text_message(&setup.target(), "hi");
    sent(&setup, &message).await.unwrap();
    setup.fake.expire_tokens();
    sent(&setup, &message).await.unwrap();
    let tokens = || {
        setup
            .fake
            .calls()
            .of("POST auth/v3/tenant_access_token/internal")
            .len()
    };
    assert_eq!(tokens(), 2);
    setup.clock.advance(chrono::TimeDelta::seconds(6_599));
    sent(&setup, &message).await.unwrap();
    assert_eq!(tokens(), 2);
    setup.clock.advance(chrono::TimeDelta::seconds(1));
    sent(&setup, &message).await.unwrap();
    assert_eq!(tokens(), 3);
}

#[tokio::test]
async fn files_and_images_are_uploaded_once() {
    let setup = Setup::start().await;
    let target = setup.target();
    for (number, name, media_type, kind) in [
        (1, "a.png", "image/png", "image"),
        (2, "a.pdf", "application/pdf", "file"),
        (3, "ü.mp4", "video/mp4", "file"),
    ] {
        let file = FileBody {
            name: name.to_owned(),
            media_type: media_type.to_owned(),
            bytes: bytes::Bytes::from_static(b"\r\n--bytes--\r\n"),
        };
        let message = OutgoingMessage {
            content: Content::File {
                user_id: "u".to_owned(),
                thread_id: "t".to_owned(),
                path: "/mnt/user-data/outputs/a".to_owned(),
            },
            ..text_message(&target, "")
        };
        let mut delivery = delivery(number);
        setup.fake.faults().script(REPLY, [Fault::Drop]);
        let first = setup
            .platform
            .send(&message, Some(file.clone()), &mut delivery)
            .await;
        assert!(matches!(first, Err(PlatformError::Unavailable(_))));
        setup
            .platform
            .send(&message, Some(file), &mut delivery)
            .await
            .unwrap();
        let sent = setup.fake.sent().pop().unwrap();
        assert_eq!(sent.msg_type, kind);
        let key = delivery.progress["key"].as_str().unwrap();
        assert!(sent.content.contains(key));
        assert_eq!(setup.fake.file(key).unwrap().bytes, "\r\n--bytes--\r\n");
    }
    let calls = setup.fake.calls();
    assert_eq!(calls.of("POST im/v1/images").len(), 1);
    assert_eq!(calls.of("POST im/v1/files").len(), 2);
    assert_eq!(
        calls.of("POST im/v1/files")[1].body["body"]["file_name"],
        "ü.mp4"
    );
}

#[tokio::test]
async fn long_text_is_sent_as_a_file_and_empty_files_are_refused() {
    let setup = Setup::start().await;
    let text_file = |text: &str| OutgoingMessage {
        content: Content::TextFile {
            name: "answer.md".to_owned(),
            text: text.to_owned(),
        },
        ..text_message(&setup.target(), "")
    };
    sent(&setup, &text_file("long")).await.unwrap();
    let fields = &setup.fake.calls().of("POST im/v1/files")[0].body["body"];
    assert_eq!(fields["file_type"], "stream");
    let result = sent(&setup, &text_file("")).await;
    assert!(matches!(result, Err(PlatformError::Refused(_))));
}
