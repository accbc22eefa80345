//! Making a request fit.

use super::*;

const FAMILY: TokenFamily = TokenFamily::OpenAi;

fn texts(messages: &[Message]) -> Vec<String> {
    messages
        .iter()
        .map(|message| message.content.text())
        .collect()
}

#[test]
fn what_fits_is_left_alone() {
    let messages = vec![Message::human("q"), Message::ai("a")];
    assert_eq!(fit(messages.clone(), 100, FAMILY), messages);
}

#[test]
fn the_oldest_go_first_but_not_what_the_user_asked_last() {
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
fn texts_that_cannot_go_lose_their_middle() {
    let messages = vec![Message::human(format!("begin{}end", "x".repeat(100_000)))];
    let text = texts(&fit(messages, 1_000, FAMILY)).remove(0);
    assert!(text.starts_with("begin") && text.ends_with("end") && text.contains("[...]"));
    assert!(FAMILY.tokens_of(&[Message::human(text)]) <= 1_000);
}

#[test]
fn a_bounded_text_keeps_its_ends() {
    assert_eq!(bounded("short".to_owned(), 10), "short");
    assert_eq!(
        bounded("a".repeat(20) + &"z".repeat(20), 19),
        format!("{}{MARKER}{}", "a".repeat(8), "z".repeat(4))
    );
    assert!(bounded("漢".repeat(1_000), 100).chars().count() < 60);
}

#[test]
fn wide_letters_are_made_to_fit_as_well() {
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
