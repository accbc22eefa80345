//! Kinds of subagents, classification of task outcomes, and prompts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::outcome::{Cap, TaskOutcome, classify};
use super::prompt;
use super::{SubagentKind, kinds};
use crate::agents::NestedEnd;
use crate::agents::test_support::state_of;
use crate::config::SubagentsConfig;
use crate::messages::{Message, ToolStatus, kwargs};
use crate::runtime::agent::{AgentError, TokenCount};
use crate::state::{StateUpdate, ThreadState};
use crate::tools::ToolControl;

fn kinds_of(config: Value) -> Vec<SubagentKind> {
    kinds(
        &serde_json::from_value::<SubagentsConfig>(config).unwrap(),
        false,
    )
}

fn kind(config: Value, name: &str) -> SubagentKind {
    kinds_of(config)
        .into_iter()
        .find(|kind| kind.name == name)
        .unwrap()
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

#[test]
fn two_kinds_are_built_in() {
    let all = kinds_of(json!({}));
    let limits: Vec<_> = all
        .iter()
        .map(|kind| (kind.name.as_str(), kind.max_turns, kind.time_limit))
        .collect();
    assert_eq!(
        limits,
        [
            ("general-purpose", 150, minutes(30)),
            ("bash", 60, minutes(30))
        ]
    );
    let [general, bash] = &all[..] else {
        panic!("two")
    };
    assert!(general.may_use("bash") && general.may_use("anything"));
    assert!(
        ["task", "ask_clarification", "present_files"]
            .iter()
            .all(|tool| !general.may_use(tool) && !bash.may_use(tool))
    );
    assert!(bash.may_use("str_replace") && !bash.may_use("web_search"));
    assert!(general.budget.enabled && general.budget.max_tokens == 2_000_000);
    assert_eq!(
        kinds(&SubagentsConfig::default(), true)[0]
            .budget
            .max_tokens,
        1_000_000
    );
}

#[test]
fn override_of_one_kind_has_priority() {
    let config = json!({
        "timeout_seconds": 60, "max_turns": 20, "token_budget": {"max_tokens": 9_000, "warn_threshold": 0.5},
        "agents": {"bash": {"timeout_seconds": 120, "model": "small", "skills": ["git"], "token_budget": {"max_tokens": 5_000}}},
        "custom_agents": {"writer": {"description": "writes", "system_prompt": "You write."}},
    });
    let general = kind(config.clone(), "general-purpose");
    assert_eq!(
        (
            general.time_limit,
            general.max_turns,
            general.model,
            general.budget.max_tokens
        ),
        (minutes(1), 20, None, 9_000)
    );
    let bash = kind(config.clone(), "bash");
    assert_eq!(
        (bash.time_limit, bash.max_turns, bash.model.as_deref()),
        (minutes(2), 20, Some("small"))
    );
    assert_eq!(
        (
            bash.budget.enabled,
            bash.budget.max_tokens,
            bash.budget.warn_threshold
        ),
        (true, 5_000, 0.5)
    );
    assert_eq!(bash.skills.unwrap(), ["git"]);
    let writer = kind(config, "writer");
    assert_eq!(
        (writer.time_limit, writer.max_turns, writer.model),
        (minutes(15), 50, None),
        "the general limits apply to built-in kinds"
    );
}

#[test]
fn custom_kind_has_its_tools_except_task() {
    let custom = |tools: Value, not: Value| {
        let entry = json!({"description": "d", "system_prompt": "p", "tools": tools, "disallowed_tools": not, "model": "big", "max_turns": 3});
        kind(
            json!({"custom_agents": {"x": entry}, "agents": {"x": {"max_turns": 7, "model": "inherit"}}}),
            "x",
        )
    };
    let some = custom(json!(["ls", "task"]), json!(["bash"]));
    assert!(
        some.may_use("ls")
            && !some.may_use("task")
            && !some.may_use("bash")
            && !some.may_use("read_file")
    );
    let all = custom(Value::Null, Value::Null);
    assert!(all.may_use("present_files") && !all.may_use("task"));
    assert_eq!((all.max_turns, all.model), (7, None));
}

#[test]
fn a_built_in_kind_cannot_be_replaced() {
    let all =
        kinds_of(json!({"custom_agents": {"bash": {"description": "mine", "system_prompt": "p"}}}));
    assert_eq!(all.len(), 2);
    assert_ne!(all[1].description, "mine");
}

fn ended(messages: impl IntoIterator<Item = Message>) -> TaskOutcome {
    let state = state_of(messages);
    classify(Ok(NestedEnd::Done(Arc::new(state.clone()))), &state)
}

fn marked(text: &str, key: &str, value: Value) -> Message {
    Message::ai(text).with(|body| {
        body.additional_kwargs.insert(key.to_owned(), value);
    })
}

fn completed(result: &str, cap: Option<Cap>) -> TaskOutcome {
    TaskOutcome::Completed {
        result: result.to_owned(),
        cap,
    }
}

#[test]
fn last_answer_determines_the_outcome() {
    assert_eq!(
        ended([
            Message::human("q"),
            Message::ai("first"),
            Message::ai("found")
        ]),
        completed("found", None)
    );
    for (reason, cap) in [
        ("token_capped", Some(Cap::Tokens)),
        ("loop_capped", Some(Cap::Loop)),
        ("safety_capped", None),
    ] {
        assert_eq!(
            ended([marked("part", kwargs::GUARD_STOP, json!(reason))]),
            completed("part", cap)
        );
    }
    let fallback = marked("sorry", kwargs::ERROR_FALLBACK, json!(true));
    assert_eq!(
        ended([fallback.clone()]),
        TaskOutcome::Failed("sorry".to_owned())
    );
    let reported = fallback.with(|body| {
        body.additional_kwargs
            .insert("error_detail".to_owned(), json!("no money"));
    });
    assert_eq!(
        ended([reported]),
        TaskOutcome::Failed("no money".to_owned())
    );
    assert!(
        matches!(ended([Message::ai(" ")]), TaskOutcome::Completed { result, .. } if result.contains("without an answer"))
    );
    assert!(matches!(
        ended([Message::human("q")]),
        TaskOutcome::Completed { .. }
    ));
}

#[test]
fn exhausted_turns_return_the_last_answer() {
    let judged =
        |messages: Vec<Message>| classify(Err(AgentError::RecursionLimit(5)), &state_of(messages));
    assert_eq!(
        judged(vec![Message::ai("so far"), Message::ai("")]),
        completed("so far", Some(Cap::Turns))
    );
    assert!(matches!(
        judged(vec![Message::human("q"), Message::ai("")]),
        TaskOutcome::Failed(_)
    ));
}

#[test]
fn other_ends_map_to_their_outcomes() {
    let state = ThreadState::default();
    let asks = ToolControl::Ask(json!("which?"));
    assert_eq!(
        classify(Ok(NestedEnd::Asks(asks.clone())), &state),
        TaskOutcome::Asks(asks.clone())
    );
    assert!(TaskOutcome::Asks(asks).event().is_none());
    let ended = AgentError::Ended {
        name: "StorageError".to_owned(),
        message: "full".to_owned(),
    };
    assert!(matches!(
        classify(Err(ended), &state),
        TaskOutcome::EndsRun { .. }
    ));
    assert_eq!(
        classify(Err(AgentError::EmptyInput), &state),
        TaskOutcome::Failed(AgentError::EmptyInput.to_string())
    );
}

#[test]
fn output_has_the_text_and_metadata_of_clients() {
    let usage = TokenCount {
        input_tokens: 5,
        output_tokens: 2,
        total_tokens: 7,
    };
    let mut state = ThreadState::default();
    state
        .apply(
            StateUpdate::channel("artifacts", json!(["/a"])),
            &crate::ids::SeededIds::new(1),
        )
        .unwrap();
    let output = completed("found", None).output(Some("m"), usage, &state);
    assert_eq!(
        (output.content.text().as_str(), output.status),
        ("Task Succeeded. Result: found", ToolStatus::Success)
    );
    assert_eq!(output.update.channels["artifacts"], json!(["/a"]));
    let metadata = json!({
        "subagent_status": "completed", "subagent_result_brief": "found",
        "subagent_result_sha256": "e9ab112e31f1a6ad29f8d8cd8ae8c8c1b91a9a6b5ab97c26ca0fda1a9abed3ed",
        "subagent_model_name": "m", "subagent_token_usage": usage,
    });
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        keys(&Value::from(output.additional_kwargs.clone())),
        keys(&metadata)
    );
    assert_eq!(
        output.additional_kwargs["subagent_token_usage"],
        metadata["subagent_token_usage"]
    );
    assert_eq!(
        output.additional_kwargs["subagent_result_sha256"]
            .as_str()
            .unwrap()
            .len(),
        64
    );

    let rendered = |outcome: TaskOutcome| {
        let output = outcome.output(None, TokenCount::default(), &ThreadState::default());
        (
            output.content.text(),
            output.status,
            Value::from(output.additional_kwargs),
        )
    };
    let (text, status, metadata) = rendered(completed("part", Some(Cap::Turns)));
    assert_eq!(
        (text.as_str(), status),
        (
            "Task Succeeded (cut short by its turn budget). Result: part",
            ToolStatus::Success
        )
    );
    assert_eq!(metadata["subagent_stop_reason"], "turn_capped");
    let (text, status, metadata) = rendered(TaskOutcome::Failed("no".to_owned()));
    assert_eq!(
        (text.as_str(), status),
        ("Task failed. Error: no", ToolStatus::Error)
    );
    assert_eq!(
        metadata,
        json!({"subagent_status": "failed", "subagent_error": "no"})
    );
    let (text, _, metadata) = rendered(TaskOutcome::TimedOut(minutes(1)));
    assert!(
        text.starts_with("Task timed out. Error: ") && text.contains("60 seconds"),
        "{text}"
    );
    assert_eq!(metadata["subagent_status"], "timed_out");
    let long = completed(&"é".repeat(5_000), None).output(
        None,
        TokenCount::default(),
        &ThreadState::default(),
    );
    assert_eq!(
        long.additional_kwargs["subagent_result_brief"]
            .as_str()
            .unwrap()
            .chars()
            .count(),
        2_000
    );
}

#[test]
fn prompt_contains_role_and_file_locations() {
    let writer = kind(
        json!({"custom_agents": {"writer": {"description": "writes", "system_prompt": " You write. "}}}),
        "writer",
    );
    let text = prompt::system_prompt(&writer, Some("<skill_system>"), true);
    assert!(
        text.starts_with("You write.\n\n")
            && text.contains("/mnt/user-data/workspace")
            && text.contains("<report>")
            && text.contains("<skill_system>")
    );
    assert!(!prompt::system_prompt(&writer, None, false).contains("/mnt/user-data"));
    let description = prompt::tool_description([&writer].into_iter());
    assert!(
        description.ends_with("Values of subagent_type:\n- writer: writes"),
        "{description}"
    );
}
