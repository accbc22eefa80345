//! Tests of the decision about sign-in attempts.

use deerflow_runtime::testkit::at;

use super::*;

fn run(count: u32, last: i64) -> FailureRun {
    FailureRun {
        count,
        last_at: Some(at(last)),
        pending: 0,
    }
}

fn refused(seconds: u64) -> LoginVerdict {
    LoginVerdict::Refuse {
        retry_after: Duration::from_secs(seconds),
    }
}

fn pair(run: FailureRun) -> LoginCounters {
    LoginCounters {
        pair: run,
        ..LoginCounters::default()
    }
}

#[test]
fn lock_doubles_from_30_seconds_to_15_minutes() {
    assert_eq!(run(4, 0).locked_until(PAIR_RULE), None);
    for (count, seconds) in [
        (5, 30),
        (6, 60),
        (7, 120),
        (8, 240),
        (9, 480),
        (10, 900),
        (99, 900),
    ] {
        let counters = pair(run(count, 0));
        assert_eq!(decide_login(&counters, at(0)), refused(seconds), "{count}");
        let end = at(0) + TimeDelta::seconds(seconds as i64);
        assert_eq!(decide_login(&counters, end), LoginVerdict::Verify);
    }
}

#[test]
fn attempts_in_progress_count_as_possible_failures() {
    let pending = |count, pending| {
        pair(FailureRun {
            pending,
            ..run(count, -10_000)
        })
    };
    assert_eq!(decide_login(&pending(2, 2), at(0)), LoginVerdict::Verify);
    assert_eq!(decide_login(&pending(2, 3), at(0)), LoginVerdict::Wait);
    assert_eq!(decide_login(&pending(9, 0), at(0)), LoginVerdict::Verify);
    assert_eq!(decide_login(&pending(9, 1), at(0)), LoginVerdict::Wait);
}

#[test]
fn address_is_refused_until_50th_failure_leaves_window() {
    let mut counters = LoginCounters::default();
    counters.address.count = ADDRESS_FAILURES - 1;
    assert_eq!(decide_login(&counters, at(0)), LoginVerdict::Verify);
    counters.address.pending = 1;
    assert_eq!(decide_login(&counters, at(0)), LoginVerdict::Wait);
    counters.address.count = ADDRESS_FAILURES;
    counters.address_full_since = Some(at(0));
    assert_eq!(decide_login(&counters, at(0)), refused(900));
}

#[test]
fn failures_over_all_addresses_slow_strangers_down() {
    let mut counters = LoginCounters {
        account: run(ACCOUNT_RULE.free, 0),
        ..LoginCounters::default()
    };
    assert_eq!(decide_login(&counters, at(0)), refused(5));
    counters.account.count = 1_000;
    assert_eq!(decide_login(&counters, at(0)), refused(300));
}

#[test]
fn known_address_is_never_refused() {
    let full = FailureRun {
        pending: 100,
        ..run(1_000, 0)
    };
    let counters = LoginCounters {
        pair: full,
        account: full,
        address: full,
        address_full_since: Some(at(0)),
        known: true,
    };
    assert_eq!(decide_login(&counters, at(0)), LoginVerdict::Verify);
}

#[test]
fn attempt_does_not_contain_entered_text() {
    let address = AddressKey::of("10.0.0.7".parse().unwrap());
    let key = AttemptKey::new(Uuid::nil(), "hunter2", address);
    assert!(!format!("{key:?}").contains("hunter2"));
    assert_eq!(key.subject.len(), 64);
}
