//! Which bodies are selections, and which events they contain.

use bytes::BytesMut;
use serde_json::json;

use super::*;
use crate::thread_log::event::{Draft, EventKey, Identity};

fn event(channel: Channel, namespace: &[&str], name: Option<&str>) -> LogEvent {
    let namespace = namespace.iter().map(ToString::to_string).collect();
    let draft = Draft {
        name: name.map(str::to_owned),
        ..Draft::new(channel, namespace, &json!({}))
    };
    let identity = Identity {
        seq: 1,
        event_id: EventKey::Text("e".to_owned()),
        timestamp: 0,
    };
    LogEvent::new(draft, &identity, &mut BytesMut::new())
}

fn read(fields: Value) -> Result<EventSelection, String> {
    EventSelection::read(fields.as_object().expect("an object"))
}

#[test]
fn invalid_fields_are_named() {
    for (fields, name) in [
        (json!({}), "channels"),
        (json!({ "channels": [] }), "channels"),
        (json!({ "channels": null }), "channels"),
        (json!({ "channels": "values" }), "channels"),
        (json!({ "channels": [5] }), "channels"),
        (json!({ "channels": ["debug"] }), "channels"),
        (json!({ "channels": ["input.requested"] }), "channels"),
        (json!({ "channels": ["custom:"] }), "channels"),
        (json!({ "channels": vec!["custom:x"; 257] }), "channels"),
        (
            json!({ "channels": ["values"], "namespaces": "tools" }),
            "namespaces",
        ),
        (
            json!({ "channels": ["values"], "namespaces": ["tools"] }),
            "namespaces",
        ),
        (
            json!({ "channels": ["values"], "namespaces": [[1]] }),
            "namespaces",
        ),
        (json!({ "channels": ["values"], "depth": true }), "depth"),
        (json!({ "channels": ["values"], "depth": -1 }), "depth"),
    ] {
        let refused = read(fields.clone()).expect_err(&fields.to_string());
        assert!(refused.starts_with(name), "{fields}: {refused}");
    }
}

#[test]
fn position_that_is_no_number_is_ignored() {
    for since in [json!(true), json!("7"), json!(-1), json!(1.5), json!(null)] {
        let selection = read(json!({ "channels": ["values"], "since": since }));
        assert_eq!(selection.expect("valid").since, None, "{since}");
    }
    let selection = read(json!({ "channels": ["values"], "since": 7 }));
    assert_eq!(selection.expect("valid").since, Some(7));
}

#[test]
fn custom_channel_selects_by_name() {
    let named = read(json!({ "channels": ["custom:x"] })).expect("valid");
    assert!(named.contains(&event(Channel::Custom, &[], Some("x"))));
    assert!(!named.contains(&event(Channel::Custom, &[], Some("y"))));
    assert!(!named.contains(&event(Channel::Custom, &[], None)));
    let all = read(json!({ "channels": ["custom"] })).expect("valid");
    assert!(all.contains(&event(Channel::Custom, &[], None)));
}

#[test]
fn namespace_selects_by_prefix_and_depth() {
    let contains = |namespaces: Value, depth: Value, namespace: &[&str]| {
        let fields = json!({ "channels": ["values"], "namespaces": namespaces, "depth": depth });
        let event = event(Channel::Values, namespace, None);
        read(fields).expect("valid").contains(&event)
    };
    assert!(contains(json!(null), json!(0), &["tools:1", "tools:2"]));
    assert!(contains(json!([]), json!(null), &["tools:1"]));
    assert!(contains(
        json!([["tools"]]),
        json!(null),
        &["tools:1", "x:2"]
    ));
    assert!(!contains(json!([["tools"]]), json!(0), &["tools:1", "x:2"]));
    assert!(contains(json!([["tools:1"]]), json!(0), &["tools:1"]));
    assert!(!contains(json!([["tools:1"]]), json!(null), &["tools:2"]));
    assert!(!contains(json!([["too"]]), json!(null), &["tools:2"]));
    assert!(contains(json!([[]]), json!(0), &[]));
    assert!(!contains(json!([[]]), json!(0), &["tools:1"]));
    assert!(!contains(json!([["tools"]]), json!(null), &[]));
}

#[test]
fn texts_of_a_selection_are_bounded() {
    let long = "x".repeat(20_000);
    let many = vec![""; 2_000];
    for (field, fields) in [
        (
            "channels",
            json!({ "channels": [format!("custom:{long}")] }),
        ),
        (
            "namespaces",
            json!({ "channels": ["values"], "namespaces": [[long]] }),
        ),
        (
            "namespaces",
            json!({ "channels": ["values"], "namespaces": [many] }),
        ),
    ] {
        let refused = read(fields).expect_err(field);
        assert!(refused.starts_with(field), "{refused}");
    }
}
