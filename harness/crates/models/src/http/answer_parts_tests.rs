//! Replay of answers: order, origin, and later changes.

use super::*;
use deerflow_core::messages::MessageBody;

fn origin(provider: &'static str) -> ModelOrigin {
    ModelOrigin::new(provider, "h.test", "m")
}

fn answer(text: &str, calls: &[&str], parts: AnswerParts) -> Message {
    let tool_calls = calls
        .iter()
        .map(|id| ToolCall::new(*id, "f", Map::new()))
        .collect();
    let kind = MessageKind::Ai {
        tool_calls,
        invalid_tool_calls: vec![],
        usage_metadata: None,
    };
    let mut body = MessageBody::new(kind, text);
    body.additional_kwargs.extend(
        parts
            .into_kwarg(&origin("p"))
            .map(|stored| (PROVIDER_PARTS_KWARG.to_owned(), stored)),
    );
    body.into()
}

fn rendered(message: &Message, provider: &'static str) -> Vec<String> {
    rendered_for(message, &origin(provider))
}

fn rendered_for(message: &Message, origin: &ModelOrigin) -> Vec<String> {
    let text = message.content.text();
    let show = |replayed| match replayed {
        ReplayPart::Text(text, extras) => {
            format!("text {text}{}", if extras.is_empty() { "" } else { "+" })
        }
        ReplayPart::Call(call, _) => format!("call {}", call.id),
        ReplayPart::Invalid(_) => "invalid".to_owned(),
        ReplayPart::Thought(text, _) => format!("thought {text}"),
        ReplayPart::ProviderSpecific(value) => format!("own {}", value["n"]),
    };
    replay_parts(message, &text, Some(origin))
        .into_iter()
        .map(show)
        .collect()
}

fn parts() -> AnswerParts {
    let mut parts = AnswerParts::default();
    parts.provider_specific(json!({"n": 1}));
    parts.text("ü");
    parts.text("b");
    parts.provider_specific(json!({"n": 2}));
    parts.call("x", Map::new());
    parts.text_with("", Map::from_iter([("signature".to_owned(), json!("s"))]));
    parts.text("c");
    parts
}

#[test]
fn replay_preserves_part_order() {
    let message = answer("übc", &["y", "x"], parts());
    assert_eq!(
        rendered(&message, "p"),
        [
            "own 1", "text üb", "own 2", "call x", "text +", "text c", "call y"
        ]
    );
    assert_eq!(
        rendered(&message, "other"),
        ["text übc", "call y", "call x"]
    );
}

#[test]
fn signed_parts_are_replayed_only_to_their_origin() {
    let message = answer("", &[], parts());
    for (server, model, own) in [
        ("h.test", "m", 2),
        ("h.test", "m2", 0),
        ("other.test", "m", 0),
    ] {
        let rendered = rendered_for(&message, &ModelOrigin::new("p", server, model));
        assert_eq!(
            rendered
                .iter()
                .filter(|replayed| replayed.starts_with("own"))
                .count(),
            own,
            "{server} {model}"
        );
    }
    assert!(replay_parts(&message, "", None).is_empty());
}

#[test]
fn forged_parts_are_ignored() {
    let overall_timeout = json!([{"type": "text", "bytes": usize::MAX}, {"type": "text", "bytes": usize::MAX}, {"type": "own", "value": 7}]);
    let stored =
        json!({"provider": "p", "server": "h.test", "model": "m", "parts": overall_timeout});
    let forged = Message::ai("so").with(|body| {
        drop(
            body.additional_kwargs
                .insert(PROVIDER_PARTS_KWARG.to_owned(), stored),
        )
    });
    assert_eq!(rendered(&forged, "p"), ["text so"]);
}

#[test]
fn replay_uses_changed_text_and_calls() {
    assert_eq!(
        rendered(&answer("other text", &[], parts()), "p"),
        ["own 1", "text other text", "own 2"]
    );
    assert_eq!(
        rendered(&answer("", &["x"], parts()), "p"),
        ["own 1", "own 2", "call x"]
    );
}

#[test]
fn thoughts_are_replayed_complete_or_not_at_all() {
    let mut parts = AnswerParts::default();
    parts.thought(2, Map::new());
    parts.text("a");
    parts.thought(1, Map::new());
    let message = answer("a", &[], parts);
    let thinking = |text: &str| {
        let text = json!(text);
        rendered(
            &message.with(|body| {
                drop(
                    body.additional_kwargs
                        .insert(kwargs::REASONING_CONTENT.to_owned(), text),
                )
            }),
            "p",
        )
    };
    assert_eq!(thinking("üb"), ["thought ü", "text a", "thought b"]);
    assert_eq!(thinking("changed"), ["text a"]);
    assert_eq!(rendered(&message, "p"), ["text a"]);
}

#[test]
fn plain_answers_store_no_parts() {
    let mut plain = AnswerParts::default();
    plain.text("a");
    plain.call("x", Map::new());
    assert_eq!(plain.into_kwarg(&origin("p")), None);
}
