//! Tests of the reasons of stuck runs.

use super::*;

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
}

fn line(status: RunStatus) -> RunSummary {
    RunSummary {
        run_id: "r".to_owned(),
        thread_id: "t".to_owned(),
        user_id: None,
        assistant: "a".to_owned(),
        status,
        attempt: 1,
        losses: 0,
        stop_reason: None,
        owner: Some("n".to_owned()),
        owner_is_alive: true,
        is_blocked: false,
        cancel_requested: false,
        created_at: at(0),
        updated_at: at(0),
    }
}

#[test]
fn stuck_runs_have_a_reason() {
    let idle = TimeDelta::minutes(10);
    let why = |line: RunSummary, now: i64| line.stuck_reason(at(now), idle);
    let (running, pending) = (line(RunStatus::Running), line(RunStatus::Pending));
    assert_eq!(why(running.clone(), 600), None);
    assert_eq!(
        why(running.clone(), 601),
        Some("no write within the idle time")
    );
    assert_eq!(
        why(
            RunSummary {
                owner_is_alive: false,
                ..running.clone()
            },
            1
        ),
        Some("no live process executes it")
    );
    assert_eq!(
        why(
            RunSummary {
                owner: None,
                ..running
            },
            1
        ),
        Some("no live process executes it")
    );
    assert_eq!(why(pending.clone(), 60), None);
    assert_eq!(
        why(pending.clone(), 61),
        Some("ready to start, but no node starts it")
    );
    assert_eq!(
        why(
            RunSummary {
                is_blocked: true,
                ..pending.clone()
            },
            9_999
        ),
        None
    );
    assert_eq!(
        why(
            RunSummary {
                created_at: at(9_999),
                ..pending.clone()
            },
            9_000
        ),
        None
    );
    assert_eq!(
        why(
            RunSummary {
                is_blocked: true,
                cancel_requested: true,
                ..pending
            },
            61
        ),
        Some("cancellation was requested and not applied")
    );
    assert_eq!(why(line(RunStatus::Success), 9_999), None);
}
