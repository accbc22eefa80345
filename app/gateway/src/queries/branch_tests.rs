//! Turns of states, and journals of branches.

use chrono::{TimeZone, Utc};
use harness::runtime::runs::store::category;
use serde_json::{Map, json};

use super::*;

fn thread(id: &str) -> ThreadId {
    ThreadId::parse(id).expect("an id")
}

fn row(seq: u64, run: &str, kind: &str, id: &str) -> RunEvent {
    let event = NewRunEvent {
        thread_id: thread("t1"),
        run_id: RunId::parse(run).expect("an id"),
        user_id: Some("ann".to_owned()),
        event_type: "llm.ai.response".to_owned(),
        category: category::MESSAGE.to_owned(),
        content: json!({ "type": kind, "id": id, "content": "text" }).into(),
        metadata: Map::new(),
        created_at: Utc.timestamp_opt(0, 0).single().expect("a time"),
    };
    RunEvent { seq, event }
}

fn human(id: &str) -> Message {
    Message::human("text").with(|body| body.id = Some(id.to_owned()))
}

fn ai(id: &str) -> Message {
    Message::ai("text").with(|body| body.id = Some(id.to_owned()))
}

fn journal() -> Vec<RunEvent> {
    vec![
        row(1, "r1", "human", "q1"),
        row(2, "r1", "ai", "a1"),
        row(3, "r2", "human", "q2"),
        row(4, "r2", "ai", "a2"),
        row(5, "r3", "human", "q2"),
        row(6, "r3", "ai", "a3"),
    ]
}

fn repeat(state: &[Message], hidden: &Hidden) -> (Vec<(String, String)>, bool) {
    let (original, branch) = (thread("t1"), thread("t2"));
    let seed = Seed {
        original: &original,
        branch: &branch,
        user: Some("ann"),
    };
    let Repeated { rows, is_followed } = repeated(&journal(), &[], state, hidden, seed);
    let pairs = rows.iter().map(|row| {
        assert_eq!(row.thread_id, branch);
        assert_eq!(row.metadata["branch_parent_thread_id"], "t1");
        (
            row.run_id.to_string(),
            row.content["id"].as_str().expect("an id").to_owned(),
        )
    });
    (pairs.collect(), is_followed)
}

#[test]
fn turn_ends_at_the_next_question() {
    let state = [human("q1"), ai("a1"), ai("b1"), human("q2"), ai("a2")];
    for (id, position) in [
        ("a1", TurnPosition::Followed),
        ("b1", TurnPosition::Followed),
        ("q2", TurnPosition::Last),
        ("a2", TurnPosition::Last),
        ("other", TurnPosition::Absent),
    ] {
        assert_eq!(turn_position(&state, id), position, "{id}");
    }
}

#[test]
fn later_and_hidden_rows_are_not_repeated() {
    let hidden = Hidden {
        runs: [RunId::parse("r2").expect("an id")].into(),
        ..Hidden::default()
    };
    let first = [human("q1"), ai("a1")];
    let pair = |run: &str, id: &str| (run.to_owned(), id.to_owned());
    let turn = [
        pair("branch-seed-t2-0", "q1"),
        pair("branch-seed-t2-0", "a1"),
    ];
    assert_eq!(repeat(&first, &hidden), (turn.to_vec(), true));
    let both = [human("q1"), ai("a1"), human("q2"), ai("a3")];
    let rest = [
        pair("branch-seed-t2-1", "q2"),
        pair("branch-seed-t2-1", "a3"),
    ];
    assert_eq!(repeat(&both, &hidden), ([turn, rest].concat(), false));
}

#[test]
fn details_of_repeated_runs_are_repeated_in_order() {
    let (original, branch) = (thread("t1"), thread("t2"));
    let seed = Seed {
        original: &original,
        branch: &branch,
        user: None,
    };
    let mut details = [row(7, "r1", "", "d1"), row(8, "r2", "", "d2")];
    details[0].seq = 1;
    for detail in &mut details {
        detail.event.category = category::SUBAGENT.to_owned();
    }
    let state = [human("q1"), ai("a1")];
    let rows = repeated(&journal(), &details, &state, &Hidden::default(), seed).rows;
    let ids: Vec<_> = rows.iter().map(|row| row.content["id"].clone()).collect();
    assert_eq!(ids, ["q1", "d1", "a1"]);
    assert_eq!(rows[1].run_id, rows[0].run_id);
    assert_eq!(rows[1].metadata["branch_seed"], true);
}

#[test]
fn compacted_messages_precede_those_of_the_state() {
    let (rows, is_followed) = repeat(&[ai("a2")], &Hidden::default());
    assert_eq!(rows.len(), 4);
    assert!(is_followed);
}

#[test]
fn unknown_state_repeats_nothing() {
    assert_eq!(repeat(&[ai("other")], &Hidden::default()), (vec![], true));
}
