//! Tests of the parser of `store.json`.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parsed(file: &Value) -> Parsed {
    parse(file.to_string().as_bytes(), "telegram").unwrap()
}

#[test]
fn entries_of_the_platform_are_read() {
    let file = json!({
        "telegram:42": {"thread_id": "t-1", "user_id": "7", "created_at": 1_700_000_000.5, "updated_at": 1_700_000_001},
        "telegram:-100:9": {"thread_id": "t-2", "user_id": 8},
        "telegram:-100:9:x": {"thread_id": "t-3", "user_id": ""},
        "telegramx:1": {"thread_id": "t-4"},
        "slack:C1:1.2": {"thread_id": "t-5"},
    });
    let Parsed {
        mut entries,
        skipped,
    } = parsed(&file);
    entries.sort_by_key(|entry| entry.thread_id.to_string());
    assert_eq!((entries.len(), skipped), (3, 0));
    let [direct, topic, nested] = &entries[..] else {
        panic!("{entries:?}")
    };
    assert_eq!(
        (direct.key(), direct.person.as_deref()),
        ("42".to_owned(), Some("7"))
    );
    let created = direct.created_at.unwrap();
    assert_eq!(created.timestamp_millis(), 1_700_000_000_500);
    assert_eq!(direct.updated_at.unwrap().timestamp(), 1_700_000_001);
    assert_eq!(
        (topic.key(), topic.chat.as_str(), topic.person.as_deref()),
        ("-100:9".to_owned(), "-100", Some("8"))
    );
    assert_eq!((topic.created_at, topic.updated_at), (None, None));
    assert_eq!(nested.topic.as_deref(), Some("9:x"));
    assert_eq!(nested.person, None);
}

#[test]
fn invalid_entries_are_skipped_and_counted() {
    let long = "9".repeat(MAX_ID_BYTES + 1);
    let file = json!({
        "telegram:1": {"thread_id": "../../etc/passwd"},
        "telegram:2": {"thread_id": "a/b"},
        "telegram:3": {"thread_id": ""},
        "telegram:4": {"thread_id": "x".repeat(65)},
        "telegram:5": {"thread_id": 5},
        "telegram:6": {},
        "telegram:7": "t",
        "telegram:8": [1],
        "telegram:9": null,
        "telegram:": {"thread_id": "t"},
        "telegram::1": {"thread_id": "t"},
        "telegram:1:": {"thread_id": "t"},
        "telegram:a\nb": {"thread_id": "t"},
        (format!("telegram:{long}")): {"thread_id": "t"},
        "telegram:10": {"thread_id": "t", "user_id": {"a": 1}, "created_at": "x", "updated_at": 1e300},
    });
    let Parsed { entries, skipped } = parsed(&file);
    assert_eq!((entries.len(), skipped), (1, 14));
    let kept = &entries[0];
    assert_eq!(kept.chat, "10");
    assert_eq!(
        (&kept.person, kept.created_at, kept.updated_at),
        (&None, None, None)
    );
}

#[test]
fn text_that_is_no_object_is_an_error() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = format!("{{\"telegram:1\":{deep}}}");
    for text in [
        "",
        "[]",
        "null",
        "{\"telegram:1\":",
        "{\"a\":1}x",
        &deep,
        &nested,
    ] {
        assert!(parse(text.as_bytes(), "telegram").is_err());
    }
    assert!(parse(b"{\"telegram:\xff\": {}}", "telegram").is_err());
    assert_eq!(parse(b"{}", "telegram").unwrap(), Parsed::default());
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
        drop(parse(&bytes, "telegram"));
    }

    #[test]
    fn any_time_is_read_without_panic(seconds: f64) {
        time(Some(&json!(seconds)));
    }
}
