//! Answers said again: in their order, by whom they may be, and as they are now.

use super::*;
use crate::messages::MessageBody;

fn maker(provider: &'static str) -> Maker {
    Maker::new(provider, "h.test", "m")
}

fn answer(text: &str, calls: &[&str], parts: Parts) -> Message {
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
            .into_kwarg(&maker("p"))
            .map(|kept| (PROVIDER_PARTS_KWARG.to_owned(), kept)),
    );
    body.into()
}

fn shown(message: &Message, provider: &'static str) -> Vec<String> {
    shown_to(message, &maker(provider))
}

fn shown_to(message: &Message, maker: &Maker) -> Vec<String> {
    let text = message.content.text();
    let show = |said| match said {
        Said::Text(text, extras) => {
            format!("text {text}{}", if extras.is_empty() { "" } else { "+" })
        }
        Said::Call(call, _) => format!("call {}", call.id),
        Said::Invalid(_) => "invalid".to_owned(),
        Said::Thought(text, _) => format!("thought {text}"),
        Said::Own(value) => format!("own {}", value["n"]),
    };
    said(message, &text, Some(maker))
        .into_iter()
        .map(show)
        .collect()
}

fn parts() -> Parts {
    let mut parts = Parts::default();
    parts.own(json!({"n": 1}));
    parts.text("ü");
    parts.text("b");
    parts.own(json!({"n": 2}));
    parts.call("x", Map::new());
    parts.text_with("", Map::from_iter([("signature".to_owned(), json!("s"))]));
    parts.text("c");
    parts
}

#[test]
fn an_answer_is_said_again_in_its_order() {
    let message = answer("übc", &["y", "x"], parts());
    assert_eq!(
        shown(&message, "p"),
        [
            "own 1", "text üb", "own 2", "call x", "text +", "text c", "call y"
        ]
    );
    assert_eq!(shown(&message, "other"), ["text übc", "call y", "call x"]);
}

#[test]
fn what_is_signed_goes_to_the_model_and_the_server_that_signed_it() {
    let message = answer("", &[], parts());
    for (server, model, own) in [
        ("h.test", "m", 2),
        ("h.test", "m2", 0),
        ("other.test", "m", 0),
    ] {
        let shown = shown_to(&message, &Maker::new("p", server, model));
        assert_eq!(
            shown.iter().filter(|said| said.starts_with("own")).count(),
            own,
            "{server} {model}"
        );
    }
    assert!(said(&message, "", None).is_empty());
}

#[test]
fn forged_parts_harm_nobody() {
    let endless = json!([{"type": "text", "bytes": usize::MAX}, {"type": "text", "bytes": usize::MAX}, {"type": "own", "value": 7}]);
    let kept = json!({"provider": "p", "server": "h.test", "model": "m", "parts": endless});
    let forged = Message::ai("so").with(|body| {
        drop(
            body.additional_kwargs
                .insert(PROVIDER_PARTS_KWARG.to_owned(), kept),
        )
    });
    assert_eq!(shown(&forged, "p"), ["text so"]);
}

#[test]
fn what_was_changed_since_is_said_as_it_is_now() {
    assert_eq!(
        shown(&answer("other text", &[], parts()), "p"),
        ["own 1", "text other text", "own 2"]
    );
    assert_eq!(
        shown(&answer("", &["x"], parts()), "p"),
        ["own 1", "own 2", "call x"]
    );
}

#[test]
fn thoughts_are_said_whole_or_not_at_all() {
    let mut parts = Parts::default();
    parts.thought(2, Map::new());
    parts.text("a");
    parts.thought(1, Map::new());
    let message = answer("a", &[], parts);
    let thinking = |text: &str| {
        let text = json!(text);
        shown(
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
    assert_eq!(shown(&message, "p"), ["text a"]);
}

#[test]
fn plain_answers_keep_no_parts() {
    let mut plain = Parts::default();
    plain.text("a");
    plain.call("x", Map::new());
    assert_eq!(plain.into_kwarg(&maker("p")), None);
}
