//! Tests of fitting a request into a window.

use super::*;

const FAMILY: TokenFamily = TokenFamily::OpenAi;

fn texts(messages: &[Message]) -> Vec<String> {
    messages
        .iter()
        .map(|message| message.content.text())
        .collect()
}

#[test]
fn fitting_request_is_unchanged() {
    let messages = vec![Message::human("q"), Message::ai("a")];
    assert_eq!(fit(messages.clone(), 100, FAMILY), messages);
}

#[test]
fn oldest_are_dropped_first_but_not_last_user_message() {
    let old = || Message::ai("x".repeat(4_000));
    let messages = vec![
        Message::human("first"),
        old(),
        Message::human("now"),
        old(),
        old(),
        Message::ai("last"),
    ];
    assert_eq!(texts(&fit(messages, 1_100, FAMILY))[..1], ["now"]);
    let messages = vec![Message::human("now"), old(), Message::ai("last")];
    assert_eq!(texts(&fit(messages, 100, FAMILY)), ["now", "last"]);
}

#[test]
fn required_texts_are_shortened_in_the_middle() {
    let messages = vec![Message::human(format!("begin{}end", "x".repeat(100_000)))];
    let text = texts(&fit(messages, 1_000, FAMILY)).remove(0);
    assert!(text.starts_with("begin") && text.ends_with("end") && text.contains("[...]"));
    assert!(FAMILY.tokens_of(&[Message::human(text)]) <= 1_000);
}

#[test]
fn wide_characters_are_fitted() {
    for family in [
        TokenFamily::OpenAi,
        TokenFamily::Claude,
        TokenFamily::Gemini,
        TokenFamily::Chinese,
        TokenFamily::Other,
    ] {
        let messages = vec![
            Message::human("q"),
            Message::ai("漢".repeat(20_000)),
            Message::human("字".repeat(20_000)),
        ];
        let fitted = fit(messages, 2_000, family);
        assert!(
            family.tokens_of(&fitted) <= 2_000,
            "{family:?}: {}",
            family.tokens_of(&fitted)
        );
    }
}
