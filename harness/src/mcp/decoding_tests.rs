//! Tests of decoding malformed messages.

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> ServerJsonRpcMessage {
    replace_unreadable_parts(message(text.as_bytes()).unwrap())
}

fn refusal(text: &str) -> String {
    read(text).into_error().unwrap().0.message.into_owned()
}

#[test]
fn reply_with_malformed_envelope_is_delivered() {
    assert_eq!(
        refusal(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#),
        "no"
    );
    assert_eq!(
        refusal(r#"{"jsonrpc":"2.0","id":7,"error":{"code":"x","message":"no"}}"#),
        "no"
    );
    assert_eq!(refusal(r#"{"id":7,"error":"no"}"#), "no");
    assert_eq!(
        refusal(r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":5}}"#),
        "5"
    );
    assert_eq!(
        refusal(r#"{"jsonrpc":"2.0","id":7,"result":null,"error":{"code":1,"message":"no"}}"#),
        "no"
    );
    assert_eq!(
        refusal(r#"{"jsonrpc":"2.0","id":7}"#),
        "it answered with neither a result nor an error"
    );
    for result in [
        r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[]},"error":null}"#,
        r#"{"id":7,"result":{"tools":[]}}"#,
    ] {
        let (result, id) = read(result).into_response().unwrap();
        assert!(
            matches!(result, ServerResult::ListToolsResult(_)) && id == RequestId::Number(7),
            "{result:?}"
        );
    }
    for none in [
        "",
        "nonsense",
        "[]",
        "7",
        r#"{"error":"no"}"#,
        r#"{"id":{},"error":"no"}"#,
        r#"{"id":7,"method":5}"#,
    ] {
        assert!(message(none.as_bytes()).is_err(), "{none}");
    }
}

#[test]
fn invalid_utf8_is_replaced_in_place() {
    let decoded_message = |escaped: &[u8]| {
        let bytes = [
            br#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":""#.as_slice(),
            escaped,
            br#""}}"#,
        ]
        .concat();
        replace_unreadable_parts(message(&bytes).unwrap())
            .into_error()
            .unwrap()
            .0
            .message
            .into_owned()
    };
    for (escaped, read) in [
        (r"cut \ud83d", "cut \u{fffd}"),
        (r"\ude00 cut", "\u{fffd} cut"),
        (r"\ud83d\ude00\ud83d", "\u{1f600}\u{fffd}"),
        (r"\ud83d\ud83d\uDE00", "\u{fffd}\u{1f600}"),
        (r"\\ud83d \ud83dx", "\\ud83d \u{fffd}x"),
        (r"\ud83d\n\u00e9", "\u{fffd}\n\u{e9}"),
    ] {
        assert_eq!(decoded_message(escaped.as_bytes()), read, "{escaped}");
    }
    assert_eq!(decoded_message(b"a\xffb"), "a\u{fffd}b");
    let marked =
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"no\"}}\r\n";
    assert_eq!(refusal(marked), "no");
}

proptest! {
    #[test]
    fn text_with_malformed_escapes_is_decoded(json in r#"(\\|\\\\|\\u|\\ud83d|\\ude00|\\u00e9|\\"|[0-9a-fx\u{e9}\u{1f600}"]){0,12}"#) {
        let whole = repaired(&json);
        prop_assert!(whole == json || json.contains("\\ud") || whole.contains("1e308"));
        prop_assert_eq!(&repaired(&whole), &whole);
    }
}

#[test]
fn malformed_part_keeps_other_parts() {
    let result = |result: Value| {
        let reply = json!({"jsonrpc": "2.0", "id": 7, "result": result});
        read(&reply.to_string()).into_response().unwrap().0
    };
    let ServerResult::CallToolResult(found) = result(json!({"content": [
        {"type": "text", "text": "before"},
        {"type": "hologram", "data": "x"},
        {"type": "image"},
        5,
        {"type": "text", "text": "after"},
    ], "isError": true})) else {
        panic!("no result of a call")
    };
    let texts: Vec<_> = found
        .content
        .iter()
        .map(|block| block.as_text().unwrap().text.as_str())
        .collect();
    assert_eq!(
        (texts, found.is_error),
        (
            vec!["before", UNKNOWN_PART, UNKNOWN_PART, UNKNOWN_PART, "after"],
            Some(true)
        )
    );
    let good = json!({"name": "good", "inputSchema": {"type": "object"}});
    let ServerResult::ListToolsResult(found) =
        result(json!({"tools": [{"name": "bad"}, good, 5], "nextCursor": "more"}))
    else {
        panic!("no list")
    };
    assert_eq!(
        (found.tools.len(), found.next_cursor.as_deref()),
        (1, Some("more"))
    );
    assert!(matches!(
        result(json!({"content": "no list"})),
        ServerResult::CustomResult(_)
    ));
}
