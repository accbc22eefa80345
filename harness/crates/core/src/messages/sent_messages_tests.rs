//! Tests of cached provider JSON.

use std::cell::Cell;

use serde_json::json;

use super::*;
use crate::json_size::raw_value;

#[test]
fn json_of_first_provider_format_is_built_once() {
    let message = Message::human("hi");
    let builds = Cell::new(0);
    let sent = |format: u64| {
        let json = message.wire_json(format, |message| {
            builds.set(builds.get() + 1);
            (format < 3).then(|| raw_value(&json!([format, message.content.text()])).unwrap())
        });
        json.map(|json| json.get().to_owned())
    };
    assert_eq!(sent(1).as_deref(), Some(r#"[1,"hi"]"#));
    assert_eq!(sent(1).as_deref(), Some(r#"[1,"hi"]"#));
    assert_eq!(builds.get(), 1);
    assert_eq!(sent(2).as_deref(), Some(r#"[2,"hi"]"#));
    assert_eq!(sent(3), None);
    assert_eq!(sent(1).as_deref(), Some(r#"[1,"hi"]"#));
    assert_eq!(builds.get(), 3);
}

fn send(messages: &[Message], format: u64) {
    for message in messages {
        message.wire_json(format, |message| {
            message
                .is_human()
                .then(|| raw_value(&message.content.text()).unwrap())
        });
    }
}

fn joined(messages: &[Message], format: u64) -> Option<String> {
    let json = Message::joined_wire_json(messages, format)?;
    Some(String::from_utf8(json.to_vec()).unwrap())
}

#[test]
fn joined_json_is_that_of_the_same_messages() {
    let [a, b, c] = ["a", "b", "c"].map(Message::human);
    let messages = [a.clone(), Message::ai("omitted"), b.clone()];
    assert_eq!(Message::join_wire_json(&messages, 1), None);
    assert_eq!(joined(&messages, 1), None);
    send(&messages, 1);
    let json = Message::join_wire_json(&messages, 1);
    assert_eq!(json, Message::joined_wire_json(&messages, 1));
    assert_eq!(joined(&messages, 1).as_deref(), Some(r#""a","b""#));
    assert!(messages.iter().all(Message::was_sent));
    let changed = [a.clone(), c, b.clone()];
    for (other, format) in [(&messages[..], 2), (&messages[..2], 1), (&changed, 1)] {
        assert_eq!(joined(other, format), None);
    }
    // Nor that of their forms for models.
    let framed = messages.each_ref().map(|message| message.framed(|_| None));
    let later_framed = [a.clone(), messages[1].clone(), framed[2].clone()];
    assert_eq!(joined(&framed, 1).or(joined(&later_framed, 1)), None);
    // A second format neither uses nor replaces what is cached.
    send(&messages, 2);
    assert_eq!(joined(&messages, 1).as_deref(), Some(r#""a","b""#));
    // The order that is sent now replaces the former one.
    send(&changed, 1);
    Message::join_wire_json(&changed, 1);
    assert_eq!(joined(&changed, 1).as_deref(), Some(r#""a","c","b""#));
    assert_eq!(joined(&messages, 1), None);
}

#[test]
fn messages_joined_in_two_orders_are_freed() {
    let pair = ["a", "b"].map(Message::human);
    for messages in [pair.to_vec(), pair.iter().rev().cloned().collect()] {
        send(&messages, 1);
        Message::join_wire_json(&messages, 1);
    }
    let memory = pair
        .each_ref()
        .map(|message| Arc::downgrade(&message.inner));
    drop(pair);
    assert!(memory.iter().all(|message| message.upgrade().is_none()));
}
