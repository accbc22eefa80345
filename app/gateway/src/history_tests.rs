//! What a reader sees of a thread whose messages were compacted, removed, undone or journaled by older versions.

use std::collections::{HashMap, HashSet};

use chrono::{TimeDelta, TimeZone, Utc};
use harness::ids::{RunId, ThreadId};
use harness::messages::Message;
use harness::runtime::runs::store::{NewRunEvent, RunEvent, category};
use harness::runtime::runs::{
    CancelAction, MultitaskStrategy, RunCompletionData, RunRecord, RunStatus,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Hidden, anchors, annotate, assemble, beginnings, durations, hidden_runs, message_of};

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
        content,
        metadata: Map::new(),
        created_at: Utc.timestamp_opt(0, 0).single().expect("a time"),
    };
    RunEvent { seq, event }
}

fn said(seq: u64, run_id: &str, id: &str) -> RunEvent {
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
        kwargs: Value::Null,
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
fn compacted_messages_stand_in_front_of_the_summary() {
    let feed = [said(1, "r1", "a"), said(2, "r1", "b"), said(3, "r2", "c")];
    let shown = assemble(
        &thread(),
        &[message("summary"), message("c"), message("d")],
        &feed,
        &Hidden::default(),
    );
    assert_eq!(ids(&shown), ["a", "b", "summary", "c", "d"]);
}

#[test]
fn without_a_journal_the_checkpoint_is_all_there_is() {
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
fn removed_messages_and_undone_runs_do_not_come_back() {
    let feed = [
        said(1, "r1", "a"),
        said(2, "r2", "b"),
        said(3, "r3", "c"),
        said(4, "r4", "d"),
    ];
    let hidden = Hidden {
        messages: HashSet::from(["a".to_owned()]),
        runs: HashSet::from([run("r2")]),
    };
    assert_eq!(
        ids(&assemble(&thread(), &[message("d")], &feed, &hidden)),
        ["c", "d"]
    );
}

#[test]
fn messages_of_subagents_and_middlewares_are_not_the_conversation() {
    let mut feed = [
        said(1, "r1", "sub"),
        said(2, "r1", "mid"),
        said(3, "r1", "lead"),
    ];
    for (row, caller) in feed
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
            &feed,
            &Hidden::default()
        )),
        ["lead", "z"]
    );
}

#[test]
fn a_row_without_an_id_gets_the_same_one_at_every_reading() {
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
fn the_printed_form_of_an_old_tool_result_is_read_back() {
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
fn rows_that_are_no_message_are_left_out() {
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
fn a_replay_hides_its_source_when_it_succeeds_and_a_failed_edit_hides_itself() {
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
    let begun = beginnings(
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
fn of_several_replays_the_newest_decides() {
    use RunStatus::{Error, Interrupted, Pending, Running, Success, Timeout};
    let again = |source: &str| json!({ "regenerate_from_run_id": source });
    let edit = |source: &str| json!({ "regenerate_from_run_id": source, "replay_kind": "edit" });
    for (newest_first, expected) in [
        (
            vec![("n2", Error, again("src")), ("n1", Success, again("src"))],
            vec![],
        ),
        (
            vec![("n2", Success, again("src")), ("n1", Error, again("src"))],
            vec!["src"],
        ),
        (vec![("n2", Running, again("src"))], vec![]),
        // The replay of a replay hides it, and its source stays hidden.
        (
            vec![("n2", Success, again("n1")), ("n1", Success, again("src"))],
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
fn the_last_answer_of_a_run_carries_how_long_it_took() {
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
    /// However a thread was compacted: the checkpoint is shown as it is and last, nothing shows twice, nothing hidden shows,
    /// what precedes the checkpoint's first message in the journal is there, and reading may stop at that message.
    #[test]
    fn compaction_never_loses_visible_history(said_count in 0_usize..20, cut in 0_usize..20, summary: bool, removed in proptest::collection::hash_set(0_usize..20, 0..4)) {
        let name = |at: usize| format!("m{at}");
        let feed: Vec<RunEvent> = (0..said_count).map(|at| said(at as u64 + 1, "r1", &name(at))).collect();
        let cut = cut.min(said_count);
        let mut checkpoint: Vec<Message> = summary.then(|| message("summary")).into_iter().collect();
        checkpoint.extend((cut..said_count).map(|at| message(&name(at))));
        let hidden = Hidden { messages: removed.iter().map(|at| name(*at)).collect(), runs: HashSet::new() };
        let shown = ids(&assemble(&thread(), &checkpoint, &feed, &hidden));

        let kept: Vec<String> = checkpoint.iter().filter_map(|message| message.id.clone()).collect();
        prop_assert!(shown.ends_with(&kept));
        prop_assert_eq!(shown.iter().collect::<HashSet<_>>().len(), shown.len());
        let expected: Vec<String> = (0..cut).filter(|at| !removed.contains(at)).map(name).chain(kept.clone()).collect();
        prop_assert_eq!(&shown, &expected);

        let wanted: HashSet<&str> = kept.iter().map(String::as_str).collect();
        let enough = feed.iter().position(|row| anchors(&thread(), row, &wanted)).map_or(feed.len(), |at| at + 1);
        prop_assert_eq!(ids(&assemble(&thread(), &checkpoint, &feed[..enough], &hidden)), expected);
    }
}
