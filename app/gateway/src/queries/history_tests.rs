//! Transcripts of threads with compacted, removed, rolled-back or old-format messages.

use std::collections::{HashMap, HashSet};

use chrono::{TimeDelta, TimeZone, Utc};
use harness::ids::{RunId, ThreadId};
use harness::messages::Message;
use harness::runtime::runs::store::{NewRunEvent, RunEvent, category};
use harness::runtime::runs::{
    CancelAction, MultitaskStrategy, RequestEcho, RunCompletionData, RunRecord, RunStatus,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Hidden, annotate, assemble, durations, hidden_runs, message_of, reaches_checkpoint, run_starts,
};

fn thread() -> ThreadId {
    ThreadId::parse("t1").expect("an id")
}

fn run(id: &str) -> RunId {
    RunId::parse(id).expect("an id")
}

fn row(seq: u64, run_id: &str, content: Value) -> RunEvent {
    let event = NewRunEvent {
        thread_id: thread(),
        run_id: run(run_id),
        user_id: None,
        event_type: "llm.ai.response".to_owned(),
        category: category::MESSAGE.to_owned(),
        content: content.into(),
        metadata: Map::new(),
        created_at: Utc.timestamp_opt(0, 0).single().expect("a time"),
    };
    RunEvent { seq, event }
}

fn message_row(seq: u64, run_id: &str, id: &str) -> RunEvent {
    row(
        seq,
        run_id,
        json!({ "type": "ai", "id": id, "content": format!("text of {id}") }),
    )
}

fn message(id: &str) -> Message {
    Message::ai("kept").with(|body| body.id = Some(id.to_owned()))
}

fn ids(messages: &[Value]) -> Vec<String> {
    messages
        .iter()
        .map(|message| message["id"].as_str().unwrap_or("?").to_owned())
        .collect()
}

fn record(id: &str, status: RunStatus, metadata: Value) -> RunRecord {
    let at = Utc.timestamp_opt(100, 0).single().expect("a time");
    RunRecord {
        run_id: run(id),
        thread_id: thread(),
        assistant: "lead_agent".to_owned(),
        user_id: None,
        status,
        attempt: 1,
        metadata: metadata.as_object().cloned().unwrap_or_default(),
        kwargs: RequestEcho::default(),
        multitask: MultitaskStrategy::Reject,
        model_name: None,
        webhook: None,
        cancel: None,
        error: None,
        error_name: None,
        stop_reason: None,
        completion: RunCompletionData::default(),
        created_at: at,
        updated_at: at + TimeDelta::seconds(3),
    }
}

#[test]
fn compacted_messages_precede_the_summary() {
    let journal = [
        message_row(1, "r1", "a"),
        message_row(2, "r1", "b"),
        message_row(3, "r2", "c"),
    ];
    let visible = assemble(
        &thread(),
        &[message("summary"), message("c"), message("d")],
        &journal,
        &Hidden::default(),
    );
    assert_eq!(ids(&visible), ["a", "b", "summary", "c", "d"]);
}

#[test]
fn transcript_without_a_journal_is_the_checkpoint() {
    assert_eq!(
        ids(&assemble(
            &thread(),
            &[message("a")],
            &[],
            &Hidden::default()
        )),
        ["a"]
    );
}

#[test]
fn removed_messages_and_rolled_back_runs_stay_hidden() {
    let journal = [
        message_row(1, "r1", "a"),
        message_row(2, "r2", "b"),
        message_row(3, "r3", "c"),
        message_row(4, "r4", "d"),
    ];
    let hidden = Hidden {
        messages: HashSet::from(["a".to_owned()]),
        runs: HashSet::from([run("r2")]),
    };
    assert_eq!(
        ids(&assemble(&thread(), &[message("d")], &journal, &hidden)),
        ["c", "d"]
    );
}

#[test]
fn subagent_and_middleware_messages_are_not_conversation() {
    let mut journal = [
        message_row(1, "r1", "sub"),
        message_row(2, "r1", "mid"),
        message_row(3, "r1", "lead"),
    ];
    for (row, caller) in journal
        .iter_mut()
        .zip(["subagent:x", "middleware:title", "lead_agent"])
    {
        row.event
            .metadata
            .insert("caller".to_owned(), caller.into());
    }
    assert_eq!(
        ids(&assemble(
            &thread(),
            &[message("z")],
            &journal,
            &Hidden::default()
        )),
        ["lead", "z"]
    );
}

#[test]
fn row_without_an_id_gets_a_stable_one() {
    let row = row(
        7,
        "r1",
        json!({ "type": "human", "id": null, "content": "hi" }),
    );
    let expected = Uuid::new_v5(&Uuid::NAMESPACE_URL, b"t1:7").to_string();
    assert_eq!(
        message_of(&thread(), &row).expect("a message")["id"],
        expected
    );
    assert_eq!(
        row.event.content["id"],
        Value::Null,
        "the row itself is untouched"
    );
}

#[test]
fn printed_form_of_an_old_tool_result_is_parsed() {
    let text = |content: &str| {
        let row = row(
            1,
            "r1",
            json!({ "type": "tool", "id": "x", "content": content }),
        );
        message_of(&thread(), &row).expect("a message")["content"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    assert_eq!(
        text(
            "Command(update={'artifacts': ['a'], 'messages': [ToolMessage(content='It\\'s\\ndone', id='1')]})"
        ),
        "It's\ndone"
    );
    assert_eq!(
        text("Command(update={'messages': [ToolMessage(content=\"X\")]})"),
        "X"
    );
    for untouched in [
        "plain",
        "Command(update={})",
        "Command(update=ToolMessage(content='open",
    ] {
        assert_eq!(text(untouched), untouched);
    }
}

#[test]
fn non_message_rows_are_omitted() {
    for content in [
        json!(null),
        json!("text"),
        json!([1]),
        json!({ "id": "x" }),
        json!({ "type": 7 }),
    ] {
        assert_eq!(message_of(&thread(), &row(1, "r1", content)), None);
    }
}

#[test]
fn successful_regeneration_hides_its_source_run() {
    let replay = json!({ "regenerate_from_run_id": "src" });
    let edit = json!({ "regenerate_from_run_id": "src", "replay_kind": "edit" });
    let source = record("src", RunStatus::Success, json!({}));
    let hidden = |status, metadata: &Value| {
        hidden_runs(&[record("new", status, metadata.clone()), source.clone()])
    };
    assert_eq!(
        hidden(RunStatus::Success, &replay),
        HashSet::from([run("src")])
    );
    assert_eq!(hidden(RunStatus::Error, &replay), HashSet::new());
    assert_eq!(
        hidden(RunStatus::Running, &edit),
        HashSet::from([run("src")])
    );
    assert_eq!(hidden(RunStatus::Error, &edit), HashSet::from([run("new")]));
    let undone = RunRecord {
        cancel: Some(CancelAction::Rollback),
        ..record("u", RunStatus::Interrupted, json!({}))
    };
    assert_eq!(hidden_runs(&[undone]), HashSet::from([run("u")]));
}

#[test]
fn a_run_begins_with_its_journaled_question() {
    let question = |seq, run, id: &str| {
        row(
            seq,
            run,
            json!({ "type": "human", "id": id, "content": "?" }),
        )
    };
    let begun = run_starts(
        &thread(),
        &[question(1, "r1", "h1"), question(3, "r2", "h2")],
    );
    let mut messages: Vec<Value> = ["h1", "a1", "h2", "a2"]
        .map(|id| json!({ "type": if id.starts_with('h') { "human" } else { "ai" }, "id": id }))
        .to_vec();
    annotate(
        &mut messages,
        &begun,
        &HashMap::from([("r2".to_owned(), 5)]),
    );
    let runs: Vec<&Value> = messages.iter().map(|message| &message["run_id"]).collect();
    assert_eq!(runs, ["r1", "r1", "r2", "r2"]);
    assert_eq!(
        messages[3]["additional_kwargs"],
        json!({ "turn_duration": 5 })
    );
}

#[test]
fn newest_of_several_regenerations_decides() {
    use RunStatus::{Error, Interrupted, Pending, Running, Success, Timeout};
    let metadata = |source: &str| json!({ "regenerate_from_run_id": source });
    let edit = |source: &str| json!({ "regenerate_from_run_id": source, "replay_kind": "edit" });
    for (newest_first, expected) in [
        (
            vec![
                ("n2", Error, metadata("src")),
                ("n1", Success, metadata("src")),
            ],
            vec![],
        ),
        (
            vec![
                ("n2", Success, metadata("src")),
                ("n1", Error, metadata("src")),
            ],
            vec!["src"],
        ),
        (vec![("n2", Running, metadata("src"))], vec![]),
        // The regeneration of a regeneration hides it, and its source stays hidden.
        (
            vec![
                ("n2", Success, metadata("n1")),
                ("n1", Success, metadata("src")),
            ],
            vec!["n1", "src"],
        ),
        (
            vec![
                ("n2", Pending, edit("src")),
                ("n1", Interrupted, edit("src")),
            ],
            vec!["n1", "src"],
        ),
        (
            vec![("n2", Timeout, edit("src")), ("n1", Success, edit("src"))],
            vec!["n2"],
        ),
        (
            vec![
                ("n2", Interrupted, edit("n1")),
                ("n1", Success, edit("src")),
            ],
            vec!["n2", "src"],
        ),
        (
            vec![
                (
                    "n1",
                    Success,
                    json!({ "regenerate_from_run_id": "not an id" }),
                ),
                ("n0", Success, json!({ "replay_kind": "edit" })),
            ],
            vec![],
        ),
    ] {
        let runs: Vec<_> = newest_first
            .into_iter()
            .map(|(id, status, metadata)| record(id, status, metadata))
            .collect();
        assert_eq!(
            hidden_runs(&runs),
            expected.into_iter().map(run).collect(),
            "{runs:?}"
        );
    }
}

#[test]
fn last_answer_of_a_run_has_its_duration() {
    let mut messages = vec![
        json!({ "type": "human", "id": "h", "additional_kwargs": { "run_id": "r1" } }),
        json!({ "type": "ai", "id": "a", "additional_kwargs": {} }),
        json!({ "type": "ai", "id": "b", "additional_kwargs": {} }),
    ];
    annotate(
        &mut messages,
        &HashMap::new(),
        &durations(&[record("r1", RunStatus::Success, json!({}))]),
    );
    assert!(messages.iter().all(|message| message["run_id"] == "r1"));
    assert_eq!(messages[1]["additional_kwargs"], json!({}));
    assert_eq!(
        messages[2]["additional_kwargs"],
        json!({ "turn_duration": 3 })
    );
}

proptest! {
    /// Properties of any compacted thread: the checkpoint is unchanged and last, no message is
    /// duplicated or hidden, the journal rows before the checkpoint's first message are present,
    /// and reading may stop at that message.
    #[test]
    fn compaction_never_loses_visible_history(message_count in 0_usize..20, cut in 0_usize..20, summary: bool, removed in proptest::collection::hash_set(0_usize..20, 0..4)) {
        let name = |at: usize| format!("m{at}");
        let journal: Vec<RunEvent> = (0..message_count).map(|at| message_row(at as u64 + 1, "r1", &name(at))).collect();
        let cut = cut.min(message_count);
        let mut checkpoint: Vec<Message> = summary.then(|| message("summary")).into_iter().collect();
        checkpoint.extend((cut..message_count).map(|at| message(&name(at))));
        let hidden = Hidden { messages: removed.iter().map(|at| name(*at)).collect(), runs: HashSet::new() };
        let visible = ids(&assemble(&thread(), &checkpoint, &journal, &hidden));

        let checkpoint_ids: Vec<String> = checkpoint.iter().filter_map(|message| message.id.clone()).collect();
        prop_assert!(visible.ends_with(&checkpoint_ids));
        prop_assert_eq!(visible.iter().collect::<HashSet<_>>().len(), visible.len());
        let expected: Vec<String> = (0..cut).filter(|at| !removed.contains(at)).map(name).chain(checkpoint_ids.clone()).collect();
        prop_assert_eq!(&visible, &expected);

        let known: HashSet<&str> = checkpoint_ids.iter().map(String::as_str).collect();
        let enough = journal.iter().position(|row| reaches_checkpoint(&thread(), row, &known)).map_or(journal.len(), |at| at + 1);
        prop_assert_eq!(ids(&assemble(&thread(), &checkpoint, &journal[..enough], &hidden)), expected);
    }
}
