//! Histories in which everything is well, and some in which one thing is not.

use super::*;

/// A run that is asked for, followed over two connections, and read.
const GOOD: &str = r#"
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

/// What is found once `old` is replaced by `new`.
fn found(old: &str, new: &str) -> Vec<String> {
    assert!(GOOD.contains(old), "{old}");
    judge(&GOOD.replacen(old, new, 1))
        .into_iter()
        .map(|broken| format!("{}: {}", broken.line, broken.promise))
        .collect()
}

fn without(line: &str) -> Vec<String> {
    found(&format!("{line}\n"), "\n")
}

#[test]
fn a_good_history_has_no_violations() {
    assert_eq!(judge(GOOD), []);
    assert_eq!(judge(""), []);
}

#[test]
fn an_accepted_input_has_to_be_in_its_thread_once() {
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
fn an_input_whose_run_was_stopped_or_undone_need_not_be_there() {
    for status in ["interrupted", "gone"] {
        let stopped = GOOD.replace(r#""status":"success""#, &format!(r#""status":"{status}""#));
        assert_eq!(
            judge(&stopped.replace(r#"{"type":"human","text":"hi"},"#, "")),
            [],
            "{status}"
        );
    }
}

#[test]
fn a_run_is_accepted_once_and_stays_as_it_ended() {
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
fn nobody_is_told_of_an_end_before_it_is_so() {
    let expected = [
        "14: run r is running after a viewer was told of its end",
        "14: run r was accepted, and is running when it is last read",
    ];
    assert_eq!(found("success", "running"), expected);
}

#[test]
fn a_stream_has_no_holes_and_no_repeats() {
    let first = r#"{"at":3,"op":"event","viewer":"v","id":"1-1","event":"metadata"}"#;
    assert_eq!(
        without(first),
        ["6: a hole in run r: viewer v gets 2-1 after the beginning"]
    );
    assert_eq!(
        found(r#""id":"4-2""#, r#""id":"3-2""#),
        [
            "10: a repeat in run r: viewer v gets 3-2 after 3-2",
            "11: a hole in run r: viewer v gets 5-2 after 3-2"
        ]
    );
    assert_eq!(
        found(r#""id":"3-2""#, r#""id":"4-2""#)[0],
        "9: a hole in run r: viewer v gets 4-2 after 2-1"
    );
    assert_eq!(
        found(r#""id":"5-2""#, r#""id":"5-1""#),
        ["11: a hole in run r: viewer v gets 5-1 after 4-2"]
    );
    assert_eq!(
        found(r#""after":"2-1""#, r#""after":"1-1""#),
        ["8: viewer v comes back from 1-1, it had seen 2-1"]
    );
}

#[test]
fn another_attempt_may_take_back_what_the_lost_one_said() {
    let resumed = [("3-2", "2-2"), ("4-2", "3-2"), ("5-2", "4-2")];
    let history = resumed.iter().fold(GOOD.to_owned(), |history, (old, new)| {
        history.replace(&format!("\"{old}\""), &format!("\"{new}\""))
    });
    assert_eq!(judge(&history), []);
}

#[test]
fn a_stream_that_was_lost_with_its_server_begins_anew_with_the_state() {
    let anew = [("3-2", "1-2"), ("4-2", "2-2"), ("5-2", "3-2")];
    let history = anew.iter().fold(GOOD.to_owned(), |history, (old, new)| {
        history.replace(&format!("\"{old}\""), &format!("\"{new}\""))
    });
    assert_eq!(judge(&history), []);
    let told = r#""id":"3-2","event":"metadata""#;
    assert_eq!(
        found(told, r#""id":"3-2","event":"messages""#),
        ["9: a hole in run r: viewer v gets 3-2 after 2-1"]
    );
    assert_eq!(
        found(told, r#""id":"1-2","event":"messages""#)[0],
        "9: a repeat in run r: viewer v gets 1-2 after 2-1"
    );
}

#[test]
fn an_end_comes_once_and_last() {
    let ended = r#"{"at":9,"op":"ended","viewer":"v"}"#;
    assert_eq!(
        without(ended),
        ["17: viewer v of run r never hears of its end"]
    );
    assert_eq!(
        found(ended, &format!("{ended}\n{ended}")),
        ["14: viewer v is told of the end of r twice"]
    );
    let after = r#"{"at":9,"op":"event","viewer":"v","id":"6-2","event":"values"}"#;
    assert_eq!(
        found(ended, &format!("{ended}\n{after}")),
        ["14: viewer v gets values 6-2 after the end"]
    );
}

#[test]
fn who_is_told_of_a_gap_knows_that_something_is_missing() {
    let hole = r#"{"at":8,"op":"event","viewer":"v","id":"4-2","event":"messages","message":"m1","text":"hello "}"#;
    assert_eq!(without(hole).len(), 2);
    assert_eq!(found(hole, r#"{"at":8,"op":"gap","viewer":"v"}"#), [""; 0]);
}

#[test]
fn an_answer_is_what_was_said_and_read() {
    assert_eq!(
        found(r#""text":"there"}"#, r#""text":"her"}"#),
        [r#"17: thread t has "hello there", viewer v read "hello her""#]
    );
    assert_eq!(
        found(
            r#""op":"said","text":"hello there""#,
            r#""op":"said","text":"bye""#
        ),
        [r#"17: thread t has "hello there", which nobody said"#]
    );
}

#[test]
fn what_is_no_history_is_told() {
    let broken = judge(
        "{\"at\":5,\"op\":\"ended\",\"viewer\":\"v\"}\n{\"at\":4,\"op\":\"ended\",\"viewer\":\"v\"}\nnonsense\n{\"at\":6,\"op\":\"danced\"}",
    );
    let lines: Vec<_> = broken.iter().map(|broken| broken.line).collect();
    assert_eq!(lines, [1, 2, 3, 4]);
    assert_eq!(broken[1].promise, "time goes back from 5 to 4");
}
