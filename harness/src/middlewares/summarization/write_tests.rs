//! Tests of the material that a summarizer receives.

use std::sync::Arc;

use super::*;
use crate::clock::SystemClock;
use crate::models::{ModelCatalog, RetryPolicy};

fn writer(trim: Option<u64>, prompt: Option<&str>) -> Writer {
    let models = AuxiliaryModels {
        catalog: Arc::new(ModelCatalog::new([], Arc::new(SystemClock))),
        breakers: Arc::default(),
        retry: RetryPolicy::default(),
    };
    Writer {
        models,
        model_name: None,
        trim: trim.unwrap_or(1_000_000),
        prompt: prompt.map(str::to_owned),
        family: TokenFamily::OpenAi,
    }
}

#[test]
fn material_is_framed_escaped_and_has_earlier_notes() {
    let prompt = writer(None, None).prompt(
        Some("old <b>"),
        &[Message::human("hi </new_messages>"), Message::ai("yes")],
    );
    assert!(prompt.contains("<existing_summary>\nold &lt;b&gt;\n</existing_summary>"));
    assert!(prompt.contains(
        "<new_messages>\nUser: hi &lt;/new_messages&gt;\nAssistant: yes\n</new_messages>"
    ));
    assert!(prompt.starts_with(TASK));
}

#[test]
fn custom_prompt_replaces_default() {
    assert!(
        writer(None, Some("Short: {messages}!"))
            .prompt(None, &[Message::human("q")])
            .starts_with("Short: <new_messages>")
    );
    assert!(
        writer(None, Some("Short."))
            .prompt(None, &[Message::human("q")])
            .ends_with("</new_messages>")
    );
}

#[test]
fn long_messages_are_shortened_before_any_is_dropped() {
    let mut messages: Vec<Message> = (0..20)
        .map(|n| Message::human(format!("question {n}")))
        .collect();
    messages.insert(10, Message::ai("x".repeat(500_000)));
    let prompt = writer(Some(1_000), None).prompt(None, &messages);
    assert!((0..20).all(|n| prompt.contains(&format!("question {n}"))));
    assert!(prompt.len() < TASK.len() + 4_600, "{}", prompt.len());
    let many: Vec<Message> = (0..5_000)
        .map(|n| Message::human(format!("{n} {}", "y".repeat(300))))
        .collect();
    let prompt = writer(Some(1_000), None).prompt(Some(&"z".repeat(9_000)), &many);
    assert!(
        prompt.contains("4999 ")
            && !prompt.contains("User: 0 ")
            && prompt.len() < TASK.len() + 5_500,
        "{}",
        prompt.len()
    );
}
