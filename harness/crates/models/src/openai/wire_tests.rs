//! The request part by part.

#[path = "wire_dialect_tests.rs"]
mod dialect;

use std::sync::Arc;

use super::*;
use crate::openai::calls::CALL_EXTRAS_KWARG;
use deerflow_core::messages::{Content, InvalidToolCall, MessageBody, ToolCall, ToolStatus};

/// Returns the body as a tree.
fn body(
    model: &str,
    settings: &Map<String, Value>,
    request: &ModelRequest,
    dialect: Dialect,
) -> Value {
    super::body(model, settings, request, dialect, &ToolTexts::default()).to_value()
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        message_id: "m".to_owned(),
        system: Some("Rules.".into()),
        messages,
        tools: Arc::default(),
        thinking: false,
        reasoning_effort: None,
        overrides: Map::new(),
    }
}

fn sent(messages: Vec<Message>, dialect: Dialect) -> Value {
    body("gpt", &Map::new(), &request(messages), dialect)["messages"].clone()
}

fn with_settings(settings: Value, dialect: Dialect) -> Value {
    body(
        "gpt",
        settings.as_object().unwrap(),
        &request(vec![]),
        dialect,
    )
}

#[test]
fn system_texts_become_one_leading_message() {
    let messages = vec![
        Message::human("hi"),
        Message::system("More."),
        Message::remove("x"),
        Message::ai("yo"),
    ];
    assert_eq!(
        sent(messages, Dialect::OPENAI),
        json!([{"role": "system", "content": "Rules.\n\nMore."}, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}])
    );
}

#[test]
fn calls_have_argument_text_and_results_have_ids() {
    let call = ToolCall::new(
        "c1",
        "ls",
        json!({"path": "/é"}).as_object().unwrap().clone(),
    );
    let invalid: InvalidToolCall =
        serde_json::from_value(json!({"name": "sh", "args": "{oops", "id": "c2"})).unwrap();
    let kind = MessageKind::Ai {
        tool_calls: vec![call.clone()],
        invalid_tool_calls: vec![invalid],
        usage_metadata: None,
    };
    let messages = vec![
        MessageBody::new(kind, "").into(),
        Message::tool(&call, "a.txt", ToolStatus::Success),
    ];
    let sent = sent(messages, Dialect::OPENAI);
    assert_eq!(
        sent[1],
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{\"path\":\"/é\"}"}},
            {"id": "c2", "type": "function", "function": {"name": "sh", "arguments": "{\"unreadable_arguments\":\"{oops\"}"}},
        ]})
    );
    assert_eq!(
        sent[2],
        json!({"role": "tool", "tool_call_id": "c1", "content": "a.txt"})
    );
}

#[test]
fn names_are_sanitised() {
    let named = |name: &str| {
        sent(
            vec![Message::human("x").with(|body| body.name = Some(name.to_owned()))],
            Dialect::OPENAI,
        )[1]
        .get("name")
        .cloned()
    };
    assert_eq!(named("user-input"), Some(json!("user-input")));
    assert_eq!(named("a b/ü"), Some(json!("a_b__")));
    assert_eq!(named("王"), None);
}

#[test]
fn images_of_every_shape_become_image_urls() {
    let blocks = json!([
        "plain",
        {"type": "text", "text": "t", "cache_control": {}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
        {"type": "image_url", "image_url": "http://x/y.png"},
        {"type": "image", "base64": "BB", "mime_type": "image/gif"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "CC"}},
        {"type": "thinking", "thinking": "secret"},
        {"type": "input_audio", "input_audio": {"data": "DD"}},
        7,
    ]);
    let human = Message::human(Content::Blocks(blocks.as_array().unwrap().clone()));
    assert_eq!(
        sent(vec![human], Dialect::OPENAI)[1]["content"],
        json!([
            {"type": "text", "text": "plain"},
            {"type": "text", "text": "t"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "http://x/y.png"}},
            {"type": "image_url", "image_url": {"url": "data:image/gif;base64,BB"}},
            {"type": "image_url", "image_url": {"url": "data:image/webp;base64,CC"}},
            {"type": "input_audio", "input_audio": {"data": "DD"}},
        ])
    );
}

#[test]
fn result_images_follow_the_batch_if_supported() {
    let call = |id: &str| ToolCall::new(id, "shot", Map::new());
    let result = |id: &str, blocks: Value| {
        Message::tool(
            &call(id),
            Content::Blocks(blocks.as_array().unwrap().clone()),
            ToolStatus::Success,
        )
    };
    let kind = MessageKind::Ai {
        tool_calls: vec![call("a"), call("b")],
        invalid_tool_calls: vec![],
        usage_metadata: None,
    };
    let image = |data: &str| json!({"type": "image", "base64": data, "mime_type": "image/png"});
    let messages = || {
        let results = [
            result("a", json!([{"type": "text", "text": "seen"}, image("AA")])),
            result("b", json!([image("BB")])),
        ];
        [MessageBody::new(kind.clone(), "").into()]
            .into_iter()
            .chain(results)
            .chain([Message::ai("so")])
            .collect::<Vec<_>>()
    };
    let seen = sent(
        messages(),
        Dialect {
            accepts_images: true,
            ..Dialect::OPENAI
        },
    );
    let roles: Vec<&str> = seen
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        ["system", "assistant", "tool", "tool", "user", "assistant"]
    );
    assert_eq!(
        (&seen[2]["content"], &seen[3]["content"]),
        (&json!("seen\n(images follow)"), &json!("(images follow)"))
    );
    let urls: Vec<&Value> = seen[4]["content"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|part| &part["image_url"]["url"])
        .collect();
    assert_eq!(
        urls,
        ["data:image/png;base64,AA", "data:image/png;base64,BB"]
    );
    let blind = sent(messages(), Dialect::DEEPSEEK);
    assert_eq!(
        (blind.as_array().unwrap().len(), &blind[3]["content"]),
        (5, &json!("(1 images, which you cannot see)"))
    );
}

#[test]
fn call_extras_are_replayed() {
    let signed = Message::ai("").with(|body| {
        body.kind = MessageKind::Ai {
            tool_calls: vec![
                ToolCall::new("a", "f", Map::new()),
                ToolCall::new("b", "f", Map::new()),
            ],
            invalid_tool_calls: vec![],
            usage_metadata: None,
        };
        body.additional_kwargs.insert(
            CALL_EXTRAS_KWARG.to_owned(),
            json!({"b": {"id": "other", "thought_signature": "s"}}),
        );
    });
    let calls = |dialect| sent(vec![signed.clone()], dialect)[1]["tool_calls"].clone();
    assert_eq!(calls(Dialect::REASONING_REPLAY)[1]["id"], "b");
    assert_eq!(
        calls(Dialect::REASONING_REPLAY)[1]["thought_signature"],
        "s"
    );
    assert_eq!(
        calls(Dialect::REASONING_REPLAY)[0].get("thought_signature"),
        None
    );
    assert_eq!(calls(Dialect::OPENAI)[1].get("thought_signature"), None);
}

#[test]
fn foreign_call_ids_and_names_are_sanitised() {
    let long = format!("call_{}", "x".repeat(60));
    let call = ToolCall::new(long.clone(), "fs.read file", Map::new());
    let kind = MessageKind::Ai {
        tool_calls: vec![call.clone()],
        invalid_tool_calls: vec![],
        usage_metadata: None,
    };
    let mut body = MessageBody::new(kind, "");
    body.additional_kwargs.insert(
        CALL_EXTRAS_KWARG.to_owned(),
        json!({long: {"thought_signature": "s"}}),
    );
    let sent = sent(
        vec![
            body.into(),
            Message::tool(&call, "done", ToolStatus::Success),
        ],
        Dialect::REASONING_REPLAY,
    );
    let log = &sent[1]["tool_calls"][0];
    assert_eq!(
        (&log["function"]["name"], &log["thought_signature"]),
        (&json!("fs_read_file"), &json!("s"))
    );
    assert_eq!(log["id"], sent[2]["tool_call_id"]);
    assert!(log["id"].as_str().is_some_and(|id| id.len() <= 40), "{log}");
}

#[test]
fn provider_keys_are_sent_and_own_keys_are_not() {
    let body = with_settings(
        json!({
            "temperature": 0.5, "top_p": null, "max_tokens": 9, "api_key": "sk", "base_url": "u", "timeout": 3, "max_retries": 2,
            "default_headers": {}, "model_kwargs": {"seed": 1}, "extra_body": {"thinking": {"type": "disabled"}, "temperature": 0.7},
        }),
        Dialect::OPENAI,
    );
    assert_eq!(
        body,
        json!({
            "model": "gpt", "messages": [{"role": "system", "content": "Rules."}], "stream": true,
            "stream_options": {"include_usage": true}, "temperature": 0.7, "max_tokens": 9, "seed": 1, "thinking": {"type": "disabled"},
        })
    );
}

#[test]
fn tools_are_described_as_functions() {
    let mut request = request(vec![]);
    request.tools = Arc::new([ToolSchema {
        name: "ls".to_owned(),
        description: "lists".to_owned(),
        parameters: json!({"type": "object"}),
    }]);
    assert_eq!(
        body("gpt", &Map::new(), &request, Dialect::OPENAI)["tools"],
        json!([{"type": "function", "function": {"name": "ls", "description": "lists", "parameters": {"type": "object"}}}])
    );
}

#[test]
fn own_keys_are_never_sent() {
    let own = json!({"auto_thinking_budget": true, "additional_headers": {}, "project": "p", "api_keys": ["k"], "fallback_models": ["b"], "credentials_path": "p", "gemini_api_key": "k", "use_responses_api": false});
    let sent = with_settings(own.clone(), Dialect::OPENAI);
    assert!(
        own.as_object()
            .unwrap()
            .keys()
            .all(|key| sent.get(key).is_none()),
        "{sent}"
    );
    assert_eq!(
        with_settings(json!({"stream_usage": false}), Dialect::OPENAI).get("stream_options"),
        None
    );
}

#[test]
fn repeated_messages_are_sent_the_same() {
    let mut messages: Vec<Message> = (0..3 * JOINED_MESSAGES)
        .map(|n| match n % 2 {
            0 => Message::human(format!("question {n}")),
            _ => Message::ai(format!("answer {n}")),
        })
        .collect();
    let call = ToolCall::new("c", "view", Map::new());
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aa"}});
    let result = Message::tool(&call, Content::Blocks(vec![image]), ToolStatus::Success);
    // A result with an image in the second part, so that a user message follows it.
    messages[JOINED_MESSAGES + 5] = result;
    let dialect = Dialect {
        accepts_images: true,
        ..Dialect::OPENAI
    };
    let first = sent(messages.clone(), dialect);
    assert_eq!(first.as_array().unwrap().len(), messages.len() + 2);
    for _ in 0..2 {
        assert_eq!(sent(messages.clone(), dialect), first);
    }
    let joined = |part| Message::joined_wire_json(part, dialect.message_format()).is_some();
    let parts: Vec<bool> = messages.chunks(JOINED_MESSAGES).map(joined).collect();
    assert_eq!(parts, [true, false, true]);
    // Without the first message the parts differ.
    messages.remove(0);
    let rest = first.as_array().unwrap();
    let sent = sent(messages, dialect);
    assert_eq!(sent.as_array().unwrap()[1..], rest[2..]);
}
