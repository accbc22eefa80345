//! Tests of request bodies and fallbacks.

use std::time::Duration;

use crate::platform::{Chat, ChatKind};

use super::*;

fn target() -> Target {
    Target {
        workspace: String::new(),
        chat: Chat {
            id: "-1001".to_owned(),
            kind: ChatKind::Group,
            parent: None,
        },
        topic: Some("5".to_owned()),
        reply_to: Some("7".to_owned()),
        person: "42".to_owned(),
        context: Value::Null,
    }
}

fn part() -> Part {
    Part {
        markup: "<b>x</b>".to_owned(),
        plain: "x".to_owned(),
    }
}

#[test]
fn bodies_follow_the_form() {
    let html = Form::first(&target(), Style::Html);
    assert_eq!(
        html.text(&part(), None),
        json!({
            "chat_id": -1001, "message_thread_id": 5,
            "reply_parameters": {"message_id": 7, "allow_sending_without_reply": true},
            "text": "<b>x</b>", "parse_mode": "HTML",
            "link_preview_options": {"is_disabled": true},
        })
    );
    let rich = Form::first(&target(), Style::Rich);
    assert_eq!(rich.send_method(), "sendRichMessage");
    assert_eq!(
        rich.edit(9, &part(), None),
        json!({"chat_id": -1001, "message_id": 9, "rich_message": {"html": "<b>x</b>"}})
    );
    let plain = Form::first(&target(), Style::Plain).text(&part(), None);
    assert_eq!(plain["text"], "x");
    assert_eq!(plain.get("parse_mode"), None);
}

#[test]
fn refusals_select_the_next_form() {
    let first = Form::first(&target(), Style::Rich);
    let html = first.after(Problem::NotFound).unwrap();
    assert_eq!(html.style, Style::Html);
    assert_eq!(html.after(Problem::NotFound), None);
    let plain = html.after(Problem::BadMarkup).unwrap();
    assert_eq!(plain.style, Style::Plain);
    assert_eq!(plain.after(Problem::BadMarkup), None);
    let alone = plain.after(Problem::ReplyMissing).unwrap();
    assert_eq!((alone.reply_to, alone.topic), (None, Some(5)));
    assert_eq!(alone.after(Problem::ReplyMissing), None);
    let outside = alone.after(Problem::TopicMissing).unwrap();
    assert_eq!(outside.topic, None);
    let moved = outside.after(Problem::Migrated(-1007)).unwrap();
    assert_eq!(moved.chat, "-1007");
    assert_eq!(moved.after(Problem::Migrated(-1008)), None);
    for problem in [
        Problem::RateLimited(Duration::from_secs(1)),
        Problem::Forbidden,
        Problem::Unavailable,
        Problem::Refused,
    ] {
        assert_eq!(html.after(problem), None, "{problem:?}");
    }
}

#[test]
fn keyboard_omits_buttons_without_valid_data() {
    let button = |label: &str, data: String| Button {
        label: label.to_owned(),
        data,
    };
    assert_eq!(
        keyboard(&[button("x", "a".repeat(65)), button("y", String::new())]),
        None
    );
    assert_eq!(
        keyboard(&[button("Yes", "y".repeat(64)), button(" ", "no".to_owned())]),
        Some(json!({"inline_keyboard": [
            [{"text": "Yes", "callback_data": "y".repeat(64)}],
            [{"text": "no", "callback_data": "no"}],
        ]}))
    );
}
