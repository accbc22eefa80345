//! Many calls: next to permitted ones, after denials, inside of subagents, with one id.

use deerflow_harness::testkit::seeded_rng::SeededRng;
use serde_json::json;

use super::{forbidden, message, note};
use crate::attempt::{Attempt, Case, Expectation};
use crate::disguises::word;
use crate::model::SUBAGENT;

/// Permitted and forbidden calls in one answer. The permitted ones are executed.
pub(super) fn mixed(chance: &SeededRng) -> Case {
    let mut notes = Vec::new();
    let batch = |notes: &mut Vec<String>| {
        let call = |at| {
            if chance.below(2) == 0 {
                return forbidden(chance);
            }
            notes.push(format!("note {at} of {}", notes.len()));
            note(notes.last().cloned().unwrap_or_default())
        };
        (0..3 + chance.below(10)).map(call).collect()
    };
    let lead = (0..=chance.below(2)).map(|_| batch(&mut notes)).collect();
    Case {
        notes,
        ..Case::new(lead)
    }
}

/// The same denied call again, with and without a change.
pub(super) fn repeated(chance: &SeededRng) -> Case {
    let first = if chance.below(4) == 0 {
        message("again")
    } else {
        forbidden(chance)
    };
    let changes = chance.below(2) == 0;
    let again = |at: usize| {
        let mut call = first.clone();
        if let Some(mut args) = call.readable().filter(|_| changes) {
            args.insert("reason".to_owned(), json!(format!("it matters, {at}")));
            call.args = json!(args).to_string();
        }
        vec![call]
    };
    let lead = (0..2 + chance.below(7)).map(again).collect();
    Case::new(lead)
}

/// Subagents that attack, sequentially or concurrently.
pub(super) fn delegated(chance: &SeededRng) -> Case {
    let task = |number: usize| {
        let kind = word(
            chance,
            &["general-purpose", "general-purpose", "bash", "lead_agent"],
        );
        Attempt::new(
            Expectation::Open,
            "task",
            &json!({"description": "a part", "prompt": format!("{SUBAGENT}{number} go"), "subagent_type": kind}),
        )
    };
    let count = 1 + chance.below(5);
    let lead = if chance.below(2) == 0 {
        vec![(0..count).map(task).collect()]
    } else {
        (0..count).map(|at| vec![task(at)]).collect()
    };
    let answer = |_| {
        let call = |_| match chance.below(6) {
            0 => message("from inside"),
            // A subagent cannot start subagents.
            1 => task(0),
            2 => Attempt::raw(Expectation::Open, "pay", r#"{"what": "everything""#),
            _ => forbidden(chance),
        };
        (0..=chance.below(3)).map(call).collect()
    };
    let subagents = (0..count)
        .map(|_| (0..=chance.below(3)).map(answer).collect())
        .collect();
    Case {
        subagents,
        ..Case::new(lead)
    }
}

/// Calls of one answer, or of one answer and the next, with the same id or without one.
pub(super) fn twins(chance: &SeededRng) -> Case {
    let mut calls = vec![
        note("once"),
        forbidden(chance),
        message("twin"),
        forbidden(chance),
    ];
    calls.truncate(2 + chance.below(3));
    if chance.below(2) == 0 {
        calls.reverse();
    }
    let id = word(chance, &["twin.", "c0.", "..", "a b", "\u{200b}"]);
    for call in &mut calls {
        call.id = id.to_owned();
    }
    let lead = if chance.below(2) == 0 {
        vec![calls]
    } else {
        calls.into_iter().map(|call| vec![call]).collect()
    };
    Case::new(lead)
}
