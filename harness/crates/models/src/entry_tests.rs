//! Settings for thinking, case by case.

use std::sync::Arc;

use super::*;

fn request(thinking: bool, effort: Option<&str>, overrides: Value) -> ModelRequest {
    ModelRequest {
        message_id: "m".to_owned(),
        system: None,
        messages: vec![],
        tools: Arc::default(),
        thinking,
        reasoning_effort: effort.map(str::to_owned),
        overrides: object(overrides).unwrap_or_default(),
    }
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

struct Case {
    name: &'static str,
    extra: Value,
    on: Value,
    off: Value,
    short: Value,
    thinking: bool,
    effort: Option<&'static str>,
    expected: Value,
}

#[test]
fn thinking_switch_gives_expected_settings() {
    let none = || Value::Null;
    let body_switch = || json!({"extra_body": {"thinking": {"type": "enabled", "budget": 9}}});
    let cases = [
        Case {
            name: "settings for thinking override the entry",
            extra: json!({"temperature": 0, "top_p": 1}),
            on: json!({"temperature": 1}),
            off: none(),
            short: none(),
            thinking: true,
            effort: None,
            expected: json!({"temperature": 1, "top_p": 1}),
        },
        Case {
            name: "the short form is merged into the long one",
            extra: json!({}),
            on: json!({"thinking": {"type": "enabled"}}),
            off: none(),
            short: json!({"budget_tokens": 5}),
            thinking: true,
            effort: None,
            expected: json!({"thinking": {"type": "enabled", "budget_tokens": 5}}),
        },
        Case {
            name: "explicit settings for thinking off take precedence",
            extra: json!({"a": 1}),
            on: body_switch(),
            off: json!({"a": 2}),
            short: none(),
            thinking: false,
            effort: None,
            expected: json!({"a": 2}),
        },
        Case {
            name: "the switch in the body is turned off, the rest is unchanged",
            extra: json!({"extra_body": {"seed": 3}}),
            on: body_switch(),
            off: none(),
            short: none(),
            thinking: false,
            effort: Some("high"),
            expected: json!({"extra_body": {"seed": 3, "thinking": {"type": "disabled"}}, "reasoning_effort": "minimal"}),
        },
        Case {
            name: "template switches become false",
            extra: json!({}),
            on: json!({"extra_body": {"chat_template_kwargs": {"enable_thinking": true, "other": 1}}}),
            off: none(),
            short: none(),
            thinking: false,
            effort: None,
            expected: json!({"extra_body": {"chat_template_kwargs": {"enable_thinking": false}}}),
        },
        Case {
            name: "Qwen's switch becomes false",
            extra: json!({}),
            on: json!({"extra_body": {"enable_thinking": true, "chat_template_kwargs": {"other": 1}}}),
            off: none(),
            short: none(),
            thinking: false,
            effort: None,
            expected: json!({"extra_body": {"enable_thinking": false}}),
        },
        Case {
            name: "OpenRouter's switch becomes false",
            extra: json!({}),
            on: json!({"extra_body": {"reasoning": {"enabled": true, "effort": "high"}}}),
            off: none(),
            short: none(),
            thinking: false,
            effort: None,
            expected: json!({"extra_body": {"reasoning": {"enabled": false}}}),
        },
        Case {
            name: "both switches of a template become false",
            extra: json!({"extra_body": {"chat_template_kwargs": {"custom": 1}}}),
            on: json!({"extra_body": {"chat_template_kwargs": {"thinking": true, "enable_thinking": true}}}),
            off: none(),
            short: none(),
            thinking: false,
            effort: Some("high"),
            expected: json!({"extra_body": {"chat_template_kwargs": {"custom": 1, "thinking": false, "enable_thinking": false}},
                "reasoning_effort": "high"}),
        },
        Case {
            name: "a plain switch is turned off",
            extra: json!({}),
            on: none(),
            off: none(),
            short: json!({"type": "enabled"}),
            thinking: false,
            effort: None,
            expected: json!({"thinking": {"type": "disabled"}}),
        },
        Case {
            name: "without settings nothing changes",
            extra: json!({"x": 1}),
            on: none(),
            off: none(),
            short: none(),
            thinking: false,
            effort: Some("low"),
            expected: json!({"x": 1, "reasoning_effort": "low"}),
        },
        Case {
            name: "thinking without settings is accepted",
            extra: json!({}),
            on: none(),
            off: none(),
            short: none(),
            thinking: true,
            effort: None,
            expected: json!({}),
        },
    ];
    for case in cases {
        let entry = ModelEntry {
            supports_thinking: true,
            supports_reasoning_effort: true,
            when_thinking_enabled: object(case.on),
            when_thinking_disabled: object(case.off),
            thinking: object(case.short),
            extra: object(case.extra).unwrap(),
            ..ModelEntry::new("e", "openai", "m")
        };
        let settings = entry
            .settings_for(&request(case.thinking, case.effort, json!({})))
            .unwrap();
        assert_eq!(Value::Object(settings), case.expected, "{}", case.name);
    }
}

#[test]
fn overrides_win_and_unsupported_effort_is_dropped() {
    let mut entry = ModelEntry::new("e", "openai", "m");
    entry.extra = object(json!({"temperature": 0.2, "reasoning_effort": "high"})).unwrap();
    let settings = entry
        .settings_for(&request(false, Some("low"), json!({"temperature": 0.9})))
        .unwrap();
    assert_eq!(Value::Object(settings), json!({"temperature": 0.9}));
}

#[test]
fn unsupported_thinking_settings_fail_only_when_on() {
    let mut entry = ModelEntry::new("e", "openai", "m");
    entry.thinking = object(json!({"type": "enabled"}));
    assert_eq!(
        entry.settings_for(&request(true, None, json!({}))),
        Err(ThinkingUnsupported)
    );
    assert!(entry.settings_for(&request(false, None, json!({}))).is_ok());
}

#[test]
fn debug_output_hides_every_value() {
    let mut entry = ModelEntry::new("e", "openai", "m");
    entry.api_key = Some("sk-canary".into());
    entry.extra =
        object(json!({"api_key": "sk-canary", "default_headers": {"x": "sk-canary"}})).unwrap();
    let debug = format!("{entry:?}");
    assert!(
        !debug.contains("canary") && debug.contains("default_headers"),
        "{debug}"
    );
}
