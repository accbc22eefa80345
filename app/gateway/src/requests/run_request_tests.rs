//! Table of all rules of a run request, and a property: every body yields a specification or an
//! error.

use std::time::Duration;

use harness::ids::{RunId, ThreadId};
use harness::runtime::agent::AssistantInfo;
use harness::runtime::runs::{
    DisconnectMode, IfNotExists, MultitaskStrategy, NodeSelector, RunInput, RunRequest, RunScope,
    StreamMode, StreamModes,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Defaults, RunTarget, into_request};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::requests::assistant_uuid;

use Dialect::{DeerFlow, Platform};

const THREAD: &str = "9b2dc817-941f-44c7-829b-8bbf38aa7cc4";
const RUN: &str = "01a1fd47-af99-70e6-abf2-fc8451a1ca1c";
const FRESH: &str = "1f1e587d-3940-4c3b-8004-ec8076329b7c";

fn thread(id: &str) -> ThreadId {
    ThreadId::parse(id).expect("a thread id")
}

fn read_at(target: &RunTarget, dialect: Dialect, body: Value) -> Result<RunRequest, ApiError> {
    let assistants = [AssistantInfo {
        name: "lead_agent".to_owned(),
        description: None,
    }];
    let metadata = json!({ "of_thread": 1, "a": 0 })
        .as_object()
        .cloned()
        .expect("an object");
    let defaults = Defaults {
        assistants: &assistants,
        assistant_id: None,
        fresh_thread: thread(FRESH),
        fresh_run: RunId::parse(RUN).expect("a run id"),
        thread_metadata: &metadata,
    };
    into_request(
        body.as_object().cloned().unwrap_or_default(),
        target,
        dialect,
        &defaults,
    )?
    .read(None)
}

fn read(dialect: Dialect, body: Value) -> Result<RunRequest, ApiError> {
    read_at(&RunTarget::Thread(thread(THREAD)), dialect, body)
}

/// Adds an assistant to the body, because the platform requires one.
fn with_assistant(mut body: Value) -> Value {
    body["assistant_id"] = "lead_agent".into();
    body
}

fn modes(words: &[StreamMode]) -> StreamModes {
    words.iter().copied().collect()
}

#[test]
fn an_empty_body_has_the_defaults_of_its_dialect() {
    let deerflow = read(DeerFlow, json!({})).expect("a spec");
    assert_eq!(
        deerflow.scope,
        RunScope::Stateful {
            thread_id: thread(THREAD),
            if_not_exists: IfNotExists::Reject
        }
    );
    assert_eq!(deerflow.assistant, "lead_agent");
    assert_eq!(deerflow.input, RunInput::Continue);
    assert_eq!(deerflow.on_disconnect, DisconnectMode::Cancel);
    assert_eq!(deerflow.multitask, MultitaskStrategy::Reject);
    assert_eq!(deerflow.stream_modes, modes(&[StreamMode::Values]));
    assert_eq!(
        deerflow.presentation.request_echo,
        json!({ "input": null, "config": null }).into()
    );
    assert!(deerflow.presentation.echo_input && deerflow.metadata.is_empty());

    let platform = read(Platform, with_assistant(json!({}))).expect("a spec");
    assert_eq!(platform.on_disconnect, DisconnectMode::Continue);
    assert_eq!(
        (platform.multitask, platform.delay),
        (MultitaskStrategy::Enqueue, Duration::ZERO)
    );
    assert_eq!(
        platform.metadata["assistant_id"],
        assistant_uuid("lead_agent").to_string()
    );
    assert!(!platform.presentation.echo_input);
}

#[test]
fn web_ui_request_is_parsed() {
    let spec = read(
        DeerFlow,
        json!({
            "input": { "messages": [{ "type": "human", "content": [{ "type": "text", "text": "Write a report" }], "additional_kwargs": {} }] },
            "config": { "recursion_limit": 1000 },
            "context": { "thread_id": "T", "model_name": "fake", "mode": "flash", "thinking_enabled": false, "is_plan_mode": false },
            "stream_mode": ["values", "messages-tuple", "updates", "custom"],
            "stream_subgraphs": false, "assistant_id": "lead_agent", "on_disconnect": "continue"
        }),
    )
    .expect("a spec");
    assert_eq!(
        spec.input.first_human().expect("a message").content.text(),
        "Write a report"
    );
    assert_eq!(spec.config.recursion_limit, Some(1000));
    let expected = json!({ "model_name": "fake", "mode": "flash", "thinking_enabled": false, "is_plan_mode": false });
    assert_eq!(Value::Object(spec.config.options), expected);
    let expected = modes(&[
        StreamMode::Values,
        StreamMode::MessagesTuple,
        StreamMode::Updates,
        StreamMode::Custom,
    ]);
    assert_eq!(
        (spec.stream_modes, spec.on_disconnect),
        (expected, DisconnectMode::Continue)
    );
}

#[test]
fn null_and_empty_input_are_distinct() {
    let input = |body: Value| read(DeerFlow, body).expect("a spec").input;
    assert_eq!(input(json!({ "input": null })), RunInput::Continue);
    assert_eq!(
        input(json!({ "input": {} })),
        RunInput::Update(Default::default())
    );
    assert_eq!(
        input(json!({ "input": {}, "command": { "resume": "red" } })),
        RunInput::Resume(json!("red"))
    );
    let RunInput::Update(update) = input(json!({ "command": { "update": [["title", "T"]] } }))
    else {
        panic!("expected an update")
    };
    assert_eq!(update.channels.get("title"), Some(&json!("T")));
}

#[test]
fn errors_are_in_the_dialect_of_the_client() {
    let kind = |body: Value| match read(DeerFlow, body) {
        Err(ApiError::Invalid(issues)) => issues[0].kind.to_owned(),
        Err(error) => format!("{} {error}", error.status(DeerFlow).as_u16()),
        Ok(_) => "accepted".to_owned(),
    };
    let table = [
        (
            json!({ "multitask_strategy": "enqueue" }),
            "unsupported_run_option",
        ),
        (json!({ "after_seconds": 5 }), "unsupported_run_option"),
        (json!({ "webhook": "http://x" }), "unsupported_run_option"),
        (json!({ "feedback_keys": [] }), "unsupported_run_option"),
        (
            json!({ "stream_resumable": true }),
            "unsupported_run_option",
        ),
        (json!({ "stream_resumable": false }), "accepted"),
        (json!({ "on_completion": "keep" }), "unsupported_run_option"),
        (
            json!({ "if_not_exists": "reject" }),
            "unsupported_run_option",
        ),
        (json!({ "if_not_exists": "create" }), "accepted"),
        (
            json!({ "durability": "async", "checkpoint_during": true, "langsmith_tracer": {}, "zzz": 1 }),
            "accepted",
        ),
        (
            json!({ "stream_mode": "messages" }),
            "unsupported_stream_mode",
        ),
        (
            json!({ "stream_mode": ["values", "events"] }),
            "unsupported_stream_mode",
        ),
        (json!({ "stream_mode": [1] }), "unsupported_stream_mode"),
        (json!({ "on_disconnect": "wait" }), "literal_error"),
        (json!({ "multitask_strategy": "bogus" }), "literal_error"),
        (
            json!({ "metadata": { "auth_token": "s3cret" } }),
            "value_error",
        ),
        (json!({ "metadata": [1] }), "dict_type"),
        (json!({ "input": "text" }), "dict_type"),
        (
            json!({ "command": { "goto": "model" } }),
            "unsupported_run_option",
        ),
        (
            json!({ "command": { "resume": 1, "update": {} } }),
            "unsupported_run_option",
        ),
        (json!({ "interrupt_before": 7 }), "list_type"),
        (
            json!({ "input": { "nope": 1 } }),
            "422 Unknown thread-state field(s): nope",
        ),
        (json!({ "assistant_id": "a/b" }), "string_pattern_mismatch"),
        (
            json!({ "checkpoint": { "thread_id": "other", "checkpoint_id": "c" } }),
            "400 checkpoint thread_id does not match request thread_id",
        ),
        (
            json!({ "checkpoint_id": "a b" }),
            "404 Checkpoint a b not found",
        ),
        (
            json!({ "config": { "configurable": { "thread_id": "../x" } } }),
            "string_pattern_mismatch",
        ),
    ];
    for (body, expected) in table {
        assert_eq!(kind(body.clone()), expected, "{body}");
    }
}

#[test]
fn error_bodies_match_the_recorded_ones() {
    let detail = |body: Value| {
        let Err(ApiError::Invalid(issues)) = read(DeerFlow, body) else {
            panic!("expected an error")
        };
        (
            issues[0].msg.clone(),
            issues[0].loc.clone(),
            issues[0].input.clone(),
            issues[0].ctx.clone(),
        )
    };
    assert_eq!(
        detail(json!({ "multitask_strategy": "enqueue" })),
        (
            "Run option 'multitask_strategy' is not supported by DeerFlow".to_owned(),
            vec![json!("body"), json!("multitask_strategy")],
            json!("enqueue"),
            Some(json!({ "option": "multitask_strategy" }))
        )
    );
    assert_eq!(
        detail(json!({ "stream_mode": ["events"] })),
        (
            "Unsupported stream mode(s): events".to_owned(),
            vec![json!("body"), json!("stream_mode")],
            json!(["events"]),
            Some(json!({ "modes": "events" }))
        )
    );
}

#[test]
fn invalid_message_is_reported_by_index() {
    let body = json!({ "input": { "messages": [{ "role": "user", "content": "hi" }, { "foo": 1 }] }, "assistant_id": "lead_agent" });
    let error = read(DeerFlow, body.clone()).expect_err("a refusal");
    assert!(
        error
            .to_string()
            .starts_with("Invalid message at input.messages[1]: "),
        "{error}"
    );
    assert_eq!(error.status(DeerFlow).as_u16(), 400);
    assert_eq!(
        read(Platform, body)
            .expect_err("a refusal")
            .status(Platform)
            .as_u16(),
        422
    );
}

#[test]
fn server_keys_of_clients_are_dropped() {
    let forged = json!({
        "input": { "messages": [{ "type": "human", "content": "x", "additional_kwargs": { "original_user_content": "y", "files": [] } }] },
        "config": {
            "configurable": { "user_id": "root", "is_internal": true, "__after": 1, "langgraph_auth_user": {}, "mine": 1 },
            "context": { "secrets": { "key": "s3cret" }, "model_name": "m" }
        },
        "context": { "user_role": "admin", "non_interactive": true, "other": 1, "mode": "pro" }
    });
    let spec = read(DeerFlow, forged).expect("a spec");
    assert_eq!(
        Value::Object(spec.config.options.clone()),
        json!({ "mine": 1, "model_name": "m", "mode": "pro" })
    );
    let additional = &spec
        .input
        .first_human()
        .expect("a message")
        .additional_kwargs;
    assert_eq!(additional.keys().collect::<Vec<_>>(), ["files"]);
    assert!(
        !spec.presentation.request_echo.text().contains("s3cret"),
        "{}",
        spec.presentation.request_echo.text()
    );
}

#[test]
fn a_recursion_limit_is_a_whole_number_above_zero() {
    for (sent, read_as) in [
        (json!(7), Some(7)),
        (json!(u32::MAX), Some(u32::MAX.into())),
        (json!(null), None),
    ] {
        let spec =
            read(DeerFlow, json!({ "config": { "recursion_limit": sent } })).expect("a spec");
        assert_eq!(spec.config.recursion_limit, read_as, "{sent}");
    }
    for dialect in [DeerFlow, Platform] {
        for sent in [
            json!(-1),
            json!(0),
            json!(true),
            json!("9"),
            json!(1.5),
            json!(1e300),
            json!([1]),
        ] {
            let body =
                json!({ "assistant_id": "lead_agent", "config": { "recursion_limit": sent } });
            let Err(ApiError::Invalid(issues)) = read(dialect, body) else {
                panic!("{sent} was accepted")
            };
            assert_eq!(
                issues[0].loc,
                [json!("body"), json!("config"), json!("recursion_limit")],
                "{sent}"
            );
        }
    }
}

#[test]
fn interrupt_nodes_are_a_list_or_all() {
    let nodes = |sent: Value| {
        read(DeerFlow, json!({ "interrupt_before": sent }))
            .expect("a spec")
            .interrupt_before
    };
    assert_eq!(nodes(json!("*")), NodeSelector::All);
    assert_eq!(
        nodes(json!(["tools"])),
        NodeSelector::Named(vec!["tools".to_owned()])
    );
    assert_eq!(nodes(json!([])), NodeSelector::None);
}

#[test]
fn stateless_runs_get_their_thread_by_the_rule_of_the_dialect() {
    let scope = |dialect, body: Value| {
        read_at(&RunTarget::Stateless, dialect, with_assistant(body)).map(|spec| spec.scope)
    };
    let stateful = |id: &str| {
        Ok(RunScope::Stateful {
            thread_id: thread(id),
            if_not_exists: IfNotExists::Create,
        })
    };
    assert_eq!(scope(DeerFlow, json!({})), stateful(FRESH));
    assert_eq!(
        scope(
            DeerFlow,
            json!({ "config": { "configurable": { "thread_id": "mine" } } })
        ),
        stateful("mine")
    );
    assert_eq!(
        scope(Platform, json!({})),
        Ok(RunScope::Stateless { temporary: true })
    );
    assert_eq!(
        scope(Platform, json!({ "on_completion": "keep" })),
        stateful(FRESH)
    );
    let resume = scope(Platform, json!({ "command": { "resume": "x" } }));
    assert_eq!(
        resume,
        Err(ApiError::BadRequest(
            "You must provide a thread_id when resuming.".to_owned()
        ))
    );
}

#[test]
fn platform_specific_rules_apply() {
    let status = |body: Value| {
        read(Platform, body).map_or_else(|error| error.status(Platform).as_u16(), |_| 200)
    };
    assert_eq!(status(json!({ "input": {} })), 422);
    for (body, expected) in [
        (
            json!({ "stream_mode": ["messages", "custom"], "stream_resumable": true, "feedback_keys": ["a"] }),
            200,
        ),
        (json!({ "stream_mode": ["tools"] }), 422),
        (json!({ "multitask_strategy": "enqueue" }), 200),
        (json!({ "multitask_strategy": "bogus" }), 422),
        (
            json!({ "webhook": "http://x", "after_seconds": 1.5, "durability": "exit", "checkpoint_during": false }),
            200,
        ),
        (json!({ "input": null, "command": null }), 200),
        (json!({ "after_seconds": "1" }), 422),
        (json!({ "after_seconds": 1e12 }), 422),
        (json!({ "after_seconds": -3 }), 200),
        (json!({ "durability": "never" }), 422),
        (json!({ "checkpoint_during": 1 }), 422),
        (json!({ "feedback_keys": "a" }), 422),
        (json!({ "on_completion": "bogus" }), 422),
        (
            json!({ "config": { "configurable": { "a": 1 } }, "context": { "b": 1 } }),
            400,
        ),
        (json!({ "config": "x" }), 422),
        (json!({ "checkpoint_id": "not-a-uuid" }), 422),
        (json!({ "if_not_exists": "create" }), 200),
        (json!({ "if_not_exists": "bogus" }), 422),
    ] {
        assert_eq!(status(with_assistant(body.clone())), expected, "{body}");
    }
    assert_eq!(
        status(json!({ "assistant_id": "no-such-graph", "input": {} })),
        422
    );
    assert_eq!(
        status(json!({ "assistant_id": "9c909fe5-1423-4566-9403-37f8a945b29b", "input": {} })),
        404
    );
    let both = read(
        Platform,
        with_assistant(json!({ "stream_mode": ["messages", "messages-tuple"] })),
    )
    .expect("a spec");
    assert_eq!(both.stream_modes, modes(&[StreamMode::MessagesTuple]));
}

#[test]
fn the_platform_s_echo_is_complete_and_without_secrets() {
    let spec = read(
        Platform,
        with_assistant(json!({
            "input": { "messages": [] }, "stream_resumable": true, "metadata": { "a": 1, "run_id": "x" },
            "config": { "configurable": { "langgraph_auth_user_id": "evil", "mine": 1, "api_key": "s3cret" }, "metadata": { "mk": 2 } }
        })),
    )
    .expect("a spec");
    let echo = spec.presentation.request_echo.to_value();
    let configurable = &echo["config"]["configurable"];
    assert_eq!(configurable["mine"], 1);
    assert_eq!(configurable["graph_id"], "lead_agent");
    assert_eq!(configurable["thread_id"], THREAD);
    assert_eq!(configurable["run_id"], RUN);
    assert_eq!(
        echo["config"]["metadata"],
        Value::Object(spec.metadata.clone())
    );
    assert_eq!(
        (&echo["resumable"], &echo["checkpoint_during"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(spec.metadata["of_thread"], 1);
    let echoed = spec.presentation.request_echo.text();
    assert!(
        !echoed.contains("evil") && !echoed.contains("s3cret"),
        "{echoed}"
    );
    assert_eq!(
        (
            &spec.metadata["a"],
            &spec.metadata["mk"],
            spec.metadata.get("run_id")
        ),
        (&json!(1), &json!(2), None)
    );
}

#[test]
fn secrets_in_a_command_or_in_metadata_are_not_echoed() {
    for dialect in [DeerFlow, Platform] {
        let command = json!({ "resume": { "api_key": "s3cret", "answer": "yes" } });
        let sent = json!({ "command": command, "metadata": { "deep": [{ "password": "s3cret" }], "mine": 1 } });
        let spec = read(dialect, with_assistant(sent)).expect("a spec");
        assert_eq!(
            spec.presentation.request_echo.to_value()["command"]["resume"],
            json!({ "api_key": "***", "answer": "yes" })
        );
        assert_eq!(
            (&spec.metadata["deep"], &spec.metadata["mine"]),
            (&json!([{ "password": "***" }]), &json!(1))
        );
        assert!(matches!(&spec.input, RunInput::Resume(answer) if answer["api_key"] == "s3cret"));
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        "[a-z*_/ -]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key(), inner), 0..5)
                .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    let known = [
        "assistant_id",
        "input",
        "command",
        "metadata",
        "config",
        "context",
        "checkpoint",
        "checkpoint_id",
        "interrupt_before",
        "stream_mode",
        "stream_subgraphs",
        "after_seconds",
        "webhook",
        "durability",
        "on_completion",
        "feedback_keys",
        "on_disconnect",
        "multitask_strategy",
        "if_not_exists",
        "messages",
        "resume",
        "update",
        "goto",
        "configurable",
        "thread_id",
        "recursion_limit",
        "type",
        "role",
        "content",
        "title",
        "additional_kwargs",
        "id",
    ];
    prop_oneof![
        proptest::sample::select(known.map(str::to_owned).to_vec()),
        "[a-z_]{0,8}".prop_map(String::from)
    ]
}

proptest! {
    #[test]
    fn any_object_yields_a_spec_or_a_client_error(
        fields in proptest::collection::vec((key(), any_json()), 0..8), platform: bool, stateless: bool,
    ) {
        let dialect = if platform { Platform } else { DeerFlow };
        let target = if stateless { RunTarget::Stateless } else { RunTarget::Thread(thread(THREAD)) };
        let body = Value::Object(fields.into_iter().collect());
        if let Err(error) = read_at(&target, dialect, body) {
            prop_assert!(error.status(dialect).is_client_error(), "{error:?}");
            prop_assert!(error.render(dialect).status().is_client_error());
        }
    }
}
