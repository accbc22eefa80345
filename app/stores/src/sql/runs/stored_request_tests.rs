//! Tests of the stored form of requests.

use deerflow_core::messages::Message;
use deerflow_runtime::runs::{RequestEcho, RunInput};
use deerflow_runtime::testkit::stored_request;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Returns a request with these contents as its input, and their echo.
fn request(contents: &[Value]) -> (StoredRunRequest, RequestEcho) {
    let mut request = stored_request("r", "t");
    let messages = contents
        .iter()
        .map(|content| json!({ "role": "user", "content": content }));
    let messages = json!(messages.collect::<Vec<_>>());
    let RunInput::Update(update) = &mut request.spec.input else {
        panic!("the request has an update");
    };
    let read = |message: &Value| Message::coerce(message.clone()).expect("a message");
    update.messages = messages
        .as_array()
        .expect("a list")
        .iter()
        .map(read)
        .collect();
    let echo = json!({ "input": { "messages": messages }, "config": {} });
    (request, echo.into())
}

fn assert_reads_back(request: &StoredRunRequest, echo: &str) -> String {
    let text = request_text(request, echo);
    let read = read_request(&text, echo).expect("a stored request");
    assert_eq!(json_text(&read), json_text(request));
    text
}

#[test]
fn long_texts_are_stored_only_in_the_echo() {
    let long = "\"quoted\"\\\n".repeat(LONG_TEXT);
    let image = format!("data:image/png;base64,{}", "A".repeat(LONG_TEXT));
    let blocks = json!([
        { "type": "text", "text": "short" },
        { "type": "image_url", "image_url": { "url": image } },
    ]);
    let (request, echo) = request(&[json!(long), json!("short"), blocks, json!(long)]);
    let text = assert_reads_back(&request, echo.text());
    assert!(text.len() < 4_000, "{}", text.len());
}

#[test]
fn texts_of_many_messages_are_stored_only_in_the_echo() {
    let text = |n: usize| json!(format!("{n} {}", "x".repeat(1_000)));
    let contents: Vec<Value> = (0..100).map(text).collect();
    let (request, echo) = request(&contents);
    let text = assert_reads_back(&request, echo.text());
    assert!(text.len() < 30_000, "{}", text.len());
}

#[test]
fn requests_with_a_short_echo_have_the_former_form() {
    for content in ["a \"text\"".to_owned(), "x".repeat(LONG_TEXT - 2000)] {
        let (request, echo) = request(&[json!(content)]);
        let text = assert_reads_back(&request, echo.text());
        assert_eq!(text, json_text(&request));
    }
}

#[test]
fn texts_that_differ_from_the_echo_are_stored() {
    let (request, _) = request(&[json!("x".repeat(2 * LONG_TEXT))]);
    let echo = json!({ "input": "y".repeat(3 * LONG_TEXT) }).to_string();
    assert_eq!(assert_reads_back(&request, &echo), json_text(&request));
}

#[test]
fn request_with_a_damaged_echo_is_unreadable() {
    let (request, echo) = request(&[json!("x".repeat(2 * LONG_TEXT))]);
    let text = request_text(&request, echo.text());
    for damaged in ["{}", "", &"é".repeat(4 * LONG_TEXT)] {
        let error = read_request(&text, damaged).expect_err("no request");
        assert!(error.contains("the echo of the run has no text"), "{error}");
    }
}

fn content() -> impl Strategy<Value = Value> {
    let length = prop_oneof![
        0..20_usize,
        MIN_OMITTED - 5..MIN_OMITTED + 5,
        LONG_TEXT - 5..LONG_TEXT + 5
    ];
    let text = ("[a\"\\\\\n\u{0}é{}\\[\\],:]{1,3}", length).prop_map(|(unit, length)| {
        let text: String = unit.chars().cycle().take(length).collect();
        Value::from(text)
    });
    let blocks = prop::collection::vec(text.clone(), 0..3).prop_map(|texts| {
        texts
            .into_iter()
            .map(|text| json!({ "type": "text", "text": text }))
            .collect()
    });
    prop_oneof![text, blocks]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_request_reads_back(
        contents in prop::collection::vec(content(), 0..4),
        others in prop::collection::vec(content(), 0..4),
    ) {
        let (request, echo) = request(&contents);
        assert_reads_back(&request, echo.text());
        let (_, other_echo) = self::request(&others);
        assert_reads_back(&request, other_echo.text());
    }

    #[test]
    fn stored_form_does_not_depend_on_the_sizes_of_writes(
        contents in prop::collection::vec(content(), 0..4),
        size in 1..2 * LONG_TEXT,
    ) {
        let (request, echo) = request(&contents);
        let mut writer = SharingWriter::new(echo.text());
        for piece in json_text(&request).as_bytes().chunks(size) {
            writer.write_all(piece)?;
        }
        let mut whole = SharingWriter::new(echo.text());
        whole.write_all(json_text(&request).as_bytes())?;
        prop_assert_eq!(writer.into_text()?, whole.into_text()?);
    }
}
