//! Tests with a valid history and variants with one error each.

use super::*;

/// Run that is requested, followed over two connections, and read.
const VALID_HISTORY: &str = r#"
{"at":1,"op":"asked","call":"c1","thread":"t","input":"hi"}
{"at":2,"op":"accepted","call":"c1","run":"r"}
{"at":2,"op":"opened","viewer":"v","run":"r","after":null}
{"at":3,"op":"event","viewer":"v","id":"1-1","event":"metadata"}
{"at":4,"op":"event","viewer":"v","id":"2-1","event":"messages","message":"m0","text":"hello "}
{"at":5,"op":"broke","viewer":"v"}
{"at":6,"op":"opened","viewer":"v","run":"r","after":"2-1"}
{"at":7,"op":"event","viewer":"v","id":"3-2","event":"metadata"}
{"at":8,"op":"event","viewer":"v","id":"4-2","event":"messages","message":"m1","text":"hello "}
{"at":8,"op":"event","viewer":"v","id":"5-2","event":"messages","message":"m1","text":"there"}
{"at":9,"op":"said","text":"hello there"}
{"at":9,"op":"ended","viewer":"v"}
{"at":10,"op":"read_run","run":"r","status":"success"}
{"at":11,"op":"asked","call":"c2","thread":"t","input":"again"}
{"at":12,"op":"refused","call":"c2"}
{"at":13,"op":"read_thread","thread":"t","messages":[{"type":"human","text":"hi"},{"type":"ai","id":"m1","text":"hello there"}]}
"#;

/// Returns the violations after replacing `old` by `new`.
fn found(old: &str, new: &str) -> Vec<String> {
    assert!(VALID_HISTORY.contains(old), "{old}");
    analyze(&VALID_HISTORY.replacen(old, new, 1))
        .into_iter()
        .map(|finding| format!("{}: {}", finding.line, finding.violation))
        .collect()
}

fn without(line: &str) -> Vec<String> {
    found(&format!("{line}\n"), "\n")
}

#[test]
fn valid_history_has_no_violations() {
    assert_eq!(analyze(VALID_HISTORY), []);
    assert_eq!(analyze(""), []);
}

#[test]
fn accepted_input_is_in_its_thread_once() {
    let human = r#"{"type":"human","text":"hi"}"#;
    assert_eq!(
        found(&format!("{human},"), ""),
        [r#"17: call c1 was accepted, and "hi" is not in thread t"#]
    );
    assert_eq!(
        found(human, &format!("{human},{human}")),
        [r#"17: call c1 was made once, and "hi" is 2 times in thread t"#]
    );
    let refused = format!(r#"{human},{{"type":"human","text":"again"}}"#);
    assert_eq!(
        found(human, &refused),
        [r#"17: call c2 was refused, and "again" is 1 times in thread t"#]
    );
}

#[test]
fn input_of_cancelled_run_may_be_missing() {
    for status in ["interrupted", "gone"] {
        let stopped =
            VALID_HISTORY.replace(r#""status":"success""#, &format!(r#""status":"{status}""#));
        assert_eq!(
            analyze(&stopped.replace(r#"{"type":"human","text":"hi"},"#, "")),
            [],
            "{status}"
        );
    }
}

#[test]
fn run_is_accepted_once_and_keeps_final_status() {
    let accepted = r#"{"at":2,"op":"accepted","call":"c1","run":"r"}"#;
    assert_eq!(
        found(accepted, &format!("{accepted}\n{accepted}")),
        ["4: run r is accepted twice"]
    );
    let read = r#"{"at":10,"op":"read_run","run":"r","status":"success"}"#;
    let changed = format!("{read}\n{}", read.replace("success", "error"));
    assert_eq!(
        found(read, &changed),
        ["15: run r ended in success and is error now"]
    );
}

#[test]
fn end_is_not_reported_before_run_ends() {
    let expected = [
        "14: run r is running after a viewer received its end",
        "14: run r was accepted, and is running when it is last read",
    ];
    assert_eq!(found("success", "running"), expected);
}

#[test]
fn gap_and_repetition_are_reported() {
    let first = r#"{"at":3,"op":"event","viewer":"v","id":"1-1","event":"metadata"}"#;
    assert_eq!(
        without(first),
        ["6: gap in run r: viewer v gets 2-1 after the beginning"]
    );
    assert_eq!(
        found(r#""id":"4-2""#, r#""id":"3-2""#),
        [
            "10: repetition in run r: viewer v gets 3-2 after 3-2",
            "11: gap in run r: viewer v gets 5-2 after 3-2"
        ]
    );
    assert_eq!(
        found(r#""id":"3-2""#, r#""id":"4-2""#)[0],
        "9: gap in run r: viewer v gets 4-2 after 2-1"
    );
    assert_eq!(
        found(r#""id":"5-2""#, r#""id":"5-1""#),
        ["11: gap in run r: viewer v gets 5-1 after 4-2"]
    );
    assert_eq!(
        found(r#""after":"2-1""#, r#""after":"1-1""#),
        ["8: viewer v resumes after 1-1, but had received 2-1"]
    );
}

#[test]
fn new_attempt_may_replace_lost_events() {
    let resumed = [("3-2", "2-2"), ("4-2", "3-2"), ("5-2", "4-2")];
    let history = resumed
        .iter()
        .fold(VALID_HISTORY.to_owned(), |history, (old, new)| {
            history.replace(&format!("\"{old}\""), &format!("\"{new}\""))
        });
    assert_eq!(analyze(&history), []);
}

#[test]
fn lost_stream_restarts_with_state() {
    let anew = [("3-2", "1-2"), ("4-2", "2-2"), ("5-2", "3-2")];
    let history = anew
        .iter()
        .fold(VALID_HISTORY.to_owned(), |history, (old, new)| {
            history.replace(&format!("\"{old}\""), &format!("\"{new}\""))
        });
    assert_eq!(analyze(&history), []);
    let ended_at = r#""id":"3-2","event":"metadata""#;
    assert_eq!(
        found(ended_at, r#""id":"3-2","event":"messages""#),
        ["9: gap in run r: viewer v gets 3-2 after 2-1"]
    );
    assert_eq!(
        found(ended_at, r#""id":"1-2","event":"messages""#)[0],
        "9: repetition in run r: viewer v gets 1-2 after 2-1"
    );
}

#[test]
fn end_is_received_once_and_last() {
    let ended = r#"{"at":9,"op":"ended","viewer":"v"}"#;
    assert_eq!(
        without(ended),
        ["17: viewer v of run r never receives its end"]
    );
    assert_eq!(
        found(ended, &format!("{ended}\n{ended}")),
        ["14: viewer v receives the end of r twice"]
    );
    let after = r#"{"at":9,"op":"event","viewer":"v","id":"6-2","event":"values"}"#;
    assert_eq!(
        found(ended, &format!("{ended}\n{after}")),
        ["14: viewer v gets values 6-2 after the end"]
    );
}

#[test]
fn viewer_notified_of_gap_may_miss_events() {
    let skipped = r#"{"at":8,"op":"event","viewer":"v","id":"4-2","event":"messages","message":"m1","text":"hello "}"#;
    assert_eq!(without(skipped).len(), 2);
    assert_eq!(
        found(skipped, r#"{"at":8,"op":"gap","viewer":"v"}"#),
        [""; 0]
    );
}

#[test]
fn answer_matches_model_output_and_viewers() {
    assert_eq!(
        found(r#""text":"there"}"#, r#""text":"her"}"#),
        [r#"17: thread t has "hello there", viewer v read "hello her""#]
    );
    assert_eq!(
        found(
            r#""op":"said","text":"hello there""#,
            r#""op":"said","text":"bye""#
        ),
        [r#"17: thread t has "hello there", which the model did not return"#]
    );
}

#[test]
fn invalid_history_is_reported() {
    let findings = analyze(
        "{\"at\":5,\"op\":\"ended\",\"viewer\":\"v\"}\n{\"at\":4,\"op\":\"ended\",\"viewer\":\"v\"}\nnonsense\n{\"at\":6,\"op\":\"danced\"}",
    );
    let lines: Vec<_> = findings.iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [1, 2, 3, 4]);
    assert_eq!(findings[1].violation, "time goes back from 5 to 4");
}
