//! Tests of progress.

use super::*;

fn event(data: Value) -> StreamEvent {
    StreamEvent {
        kind: EventKind::MessagesTuple,
        data,
    }
}

fn call(name: &str) -> StreamEvent {
    event(
        json!({ "type": "ai", "content": "", "id": "a", "tool_calls": [{ "name": name, "args": { "path": "ü".repeat(900) }, "id": "c" }] }),
    )
}

#[test]
fn first_progress_is_immediate_and_rest_rate_limited() {
    let begin = Instant::now();
    let mut progress = RunProgress::new(begin);
    assert_eq!(
        progress.due_report(begin),
        Some((1, "the agent is working".to_owned()))
    );
    progress.observe(&call("ls"));
    assert_eq!(progress.due_report(begin + MIN_INTERVAL / 2), None);
    progress.observe(&event(
        json!({ "type": "tool", "name": "ls", "content": "a", "status": "success" }),
    ));
    assert_eq!(
        progress.due_report(begin + MIN_INTERVAL),
        Some((2, "ls has finished".to_owned()))
    );
    assert_eq!(
        progress.due_report(begin + MIN_INTERVAL * 3),
        None,
        "there is nothing new"
    );
}

#[test]
fn silent_run_reports_progress_at_intervals() {
    let begin = Instant::now();
    let mut progress = RunProgress::new(begin);
    progress.due_report(begin);
    assert_eq!(
        progress.due_report(begin + MAX_SILENCE - MIN_INTERVAL),
        None
    );
    assert_eq!(
        progress.due_report(begin + MAX_SILENCE),
        Some((2, "the agent is working".to_owned()))
    );
}

#[test]
fn calls_and_results_are_truncated_activities() {
    let mut progress = RunProgress::new(Instant::now());
    let called = progress.observe(&call("ls")).remove(0);
    assert_eq!(
        (called.is_problem, &called.data["tool"]),
        (false, &json!("ls"))
    );
    assert_eq!(
        called.data["arguments"].as_str().unwrap().chars().count(),
        MAX_EXCERPT_CHARS + 1
    );
    let failed = progress
        .observe(&event(
            json!({ "type": "tool", "name": "ls", "content": "no such file", "status": "error" }),
        ))
        .remove(0);
    assert_eq!(
        (failed.is_problem, &failed.data["result"]),
        (true, &json!("no such file"))
    );
    assert!(
        progress
            .observe(&event(
                json!({ "type": "ai", "id": "a", "content": "words" })
            ))
            .is_empty()
    );
    assert!(
        progress
            .observe(&StreamEvent {
                kind: EventKind::Custom,
                data: json!({ "type": "tool" })
            })
            .is_empty()
    );
}
