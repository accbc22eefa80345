//! Tests of the decoding of batches, with hostile updates.

use serde_json::json;

use super::*;

fn me() -> Me {
    Me {
        id: 1,
        username: "deer_bot".to_owned(),
        reads_groups: true,
    }
}

fn batch_of(body: &[u8]) -> Option<Batch> {
    decode_batch(body, &me(), DateTime::UNIX_EPOCH)
}

fn message(update: i64, text: &str) -> String {
    json!({"update_id": update, "message": {
        "message_id": update, "date": 5, "chat": {"id": 42, "type": "private"},
        "from": {"id": 42, "is_bot": false}, "text": text,
    }})
    .to_string()
}

#[test]
fn batch_confirms_the_highest_update() {
    let body = format!(
        r#"{{"ok":true,"result":[{},{}]}}"#,
        message(8, "b"),
        message(7, "a")
    );
    let batch = batch_of(body.as_bytes()).unwrap();
    assert_eq!(batch.updates, 2);
    assert_eq!(batch.next_offset, Some(9));
    let ids: Vec<&str> = batch.events.iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids, ["8", "7"]);
}

#[test]
fn malformed_update_costs_only_itself() {
    let deep = format!(
        r#"{{"update_id":2,"message":{}1{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    for (hostile, id) in [
        (deep.as_str(), Some(2)),
        (r#"{"update_id":2,"message":7}"#, Some(2)),
        (r#"{"update_id":2,"message":{"message_id":"x"}}"#, Some(2)),
        (
            r#"{"update_id":2,"message":{"message_id":1e300,"chat":[]}}"#,
            Some(2),
        ),
        (r#"{"update_id":2,"future_kind":{}}"#, Some(2)),
        (r#"{"update_id":2,"callback_query":{"id":5}}"#, Some(2)),
        (
            r#"{"update_id":2,"stopped_message_generation":{}}"#,
            Some(2),
        ),
        (r#"{"update_id":2,"message":{"text":"\ud800"}}"#, Some(2)),
        (r#"{"update_id":"2"}"#, None),
        (r#"{"update_id":99999999999999999999999}"#, None),
        ("null", None),
        ("[[]]", None),
        ("\"text\"", None),
    ] {
        let body = format!(r#"{{"ok":true,"result":[{hostile},{}]}}"#, message(3, "x"));
        let batch = batch_of(body.as_bytes()).unwrap();
        let start: String = hostile.chars().take(60).collect();
        assert_eq!(batch.events.len(), 1, "{start}");
        assert_eq!(batch.malformed.len(), 1, "{start}");
        assert_eq!(batch.malformed[0].0, id, "{start}");
        assert_eq!(batch.next_offset, Some(4), "{start}");
    }
}

#[test]
fn invalid_utf8_is_replaced() {
    let mut body = format!(r#"{{"ok":true,"result":[{}]}}"#, message(3, "a#b")).into_bytes();
    for byte in &mut body {
        if *byte == b'#' {
            *byte = 0xff;
        }
    }
    let batch = batch_of(&body).unwrap();
    assert_eq!(batch.events.len(), 1);
}

#[test]
fn highest_possible_update_id_does_not_overflow() {
    let body = format!(r#"{{"ok":true,"result":[{}]}}"#, message(i64::MAX, "x"));
    assert_eq!(
        batch_of(body.as_bytes()).unwrap().next_offset,
        Some(i64::MAX)
    );
}

#[test]
fn other_answers_are_no_batch() {
    for body in [
        r#"{"ok":false,"error_code":409,"description":"Conflict"}"#,
        r#"{"ok":true,"result":{}}"#,
        r#"{"ok":true}"#,
        "<html>",
        "",
    ] {
        assert_eq!(batch_of(body.as_bytes()), None, "{body}");
    }
}
