//! Tests of the differences between the dialects of providers.

use super::*;
use crate::openai::decode::REASONING_DETAILS_KWARG;
use deerflow_core::messages::kwargs;

#[test]
fn reasoning_is_replayed_by_dialect() {
    let thought = Message::ai("so").with(|body| {
        body.additional_kwargs
            .insert(kwargs::REASONING_CONTENT.to_owned(), json!("hm"));
    });
    let assistant = |dialect| sent(vec![thought.clone()], dialect)[1].clone();
    assert_eq!(
        assistant(Dialect::OPENAI),
        json!({"role": "assistant", "content": "so"})
    );
    assert_eq!(
        assistant(Dialect::DEEPSEEK),
        json!({"role": "assistant", "content": "so", "reasoning_content": "hm"})
    );
    assert_eq!(
        assistant(Dialect::VLLM),
        json!({"role": "assistant", "content": "so", "reasoning": "hm"})
    );
    for (dialect, field, placeholder) in [
        (Dialect::DEEPSEEK, "reasoning_content", Some("")),
        (Dialect::REASONING_REPLAY, "reasoning_content", Some("")),
        (Dialect::KIMI, "reasoning_content", Some(" ")),
        (Dialect::VLLM, "reasoning", None),
    ] {
        let plain = sent(vec![Message::ai("of another model")], dialect);
        assert_eq!(
            plain[1].get(field).and_then(Value::as_str),
            placeholder,
            "{}",
            dialect.provider
        );
    }
}

#[test]
fn dialects_rename_parameters() {
    let openai = with_settings(
        json!({"max_tokens": 9}),
        Dialect {
            renames_max_tokens: true,
            ..Dialect::OPENAI
        },
    );
    assert_eq!(
        (openai.get("max_tokens"), &openai["max_completion_tokens"]),
        (None, &json!(9))
    );
    let minimax = sent(
        vec![Message::human("x").with(|body| body.name = Some("ann".to_owned()))],
        Dialect::MINIMAX,
    );
    assert_eq!(minimax[1], json!({"role": "user", "content": "x"}));
    assert_eq!(
        with_settings(json!({}), Dialect::MINIMAX)["reasoning_split"],
        true
    );
    let vllm = with_settings(
        json!({"extra_body": {"chat_template_kwargs": {"thinking": false}}}),
        Dialect::VLLM,
    );
    assert_eq!(
        vllm["chat_template_kwargs"],
        json!({"enable_thinking": false})
    );
}

#[test]
fn mindie_tools_request_is_unstreamed_plain_text() {
    let blocks = Content::Blocks(vec![
        json!({"type": "text", "text": "a"}),
        json!({"type": "image_url", "image_url": "u"}),
        json!("b"),
    ]);
    let mut request = request(vec![
        Message::human(blocks).with(|body| body.name = Some("ann".to_owned())),
    ]);
    let plain = body("m", &Map::new(), &request, Dialect::MINDIE);
    assert_eq!(
        (&plain["stream"], &plain["messages"][1]),
        (&json!(true), &json!({"role": "user", "content": "ab"}))
    );
    request.tools = Arc::new([ToolSchema {
        name: "ls".to_owned(),
        description: String::new(),
        parameters: json!({}),
    }]);
    let with_tools = body("m", &Map::new(), &request, Dialect::MINDIE);
    assert_eq!(
        (&with_tools["stream"], with_tools.get("stream_options")),
        (&json!(false), None)
    );
}

#[test]
fn ollama_parameters_are_renamed() {
    let sent = with_settings(
        json!({"num_predict": 9, "reasoning": false, "temperature": 0}),
        Dialect::OLLAMA,
    );
    assert_eq!(
        (
            &sent["max_tokens"],
            &sent["reasoning_effort"],
            &sent["temperature"]
        ),
        (&json!(9), &json!("none"), &json!(0))
    );
    assert!(sent.get("num_predict").is_none() && sent.get("reasoning").is_none());
    assert_eq!(
        with_settings(json!({"reasoning": true}), Dialect::OLLAMA).get("reasoning_effort"),
        None
    );
    assert_eq!(
        with_settings(json!({"reasoning": "high"}), Dialect::OLLAMA)["reasoning_effort"],
        "high"
    );
}

#[test]
fn reasoning_details_are_replayed_to_openrouter_only() {
    let thought = Message::ai("so").with(|body| {
        body.additional_kwargs.insert(
            REASONING_DETAILS_KWARG.to_owned(),
            json!([{"type": "reasoning.encrypted", "data": "x"}]),
        );
    });
    let details = |dialect| {
        sent(vec![thought.clone()], dialect)[1]
            .get("reasoning_details")
            .cloned()
    };
    assert_eq!(
        details(Dialect::OPENROUTER),
        Some(json!([{"type": "reasoning.encrypted", "data": "x"}]))
    );
    assert_eq!(details(Dialect::OPENAI), None);
}
