//! Tests of the retry schedule of sending.

use deerflow_domain::channels::{Account, NewOutgoing, OutgoingState};
use serde_json::Value;
use uuid::Uuid;

use chrono::TimeDelta;

use super::*;

fn row(attempts: u32, age_secs: i64) -> (Outgoing, DateTime<Utc>) {
    let created_at = DateTime::UNIX_EPOCH;
    let row = Outgoing {
        message: NewOutgoing {
            id: Uuid::nil(),
            account: Account::new("p", "a"),
            chat: "c".to_owned(),
            conversation: "c".to_owned(),
            part: 0,
            body: Value::Null,
        },
        seq: 1,
        state: OutgoingState::Pending,
        attempts,
        not_before: created_at,
        progress: Value::Null,
        error: None,
        platform_ids: Vec::new(),
        created_at,
        ended_at: None,
    };
    (row, created_at + TimeDelta::seconds(age_secs))
}

fn unavailable() -> PlatformError {
    PlatformError::Unavailable("x".to_owned())
}

fn limited(secs: u64, account: bool) -> PlatformError {
    PlatformError::RateLimited {
        retry_after: Duration::from_secs(secs),
        account,
    }
}

#[test]
fn rate_limit_delays_for_the_named_time_and_is_not_counted() {
    let (row, now) = row(3, 0);
    for (secs, account) in [(33, false), (7, true)] {
        let expected = AfterSend::Retry {
            delay: Duration::from_secs(secs),
            counts: false,
        };
        let limited = limited(secs, account);
        assert_eq!(after_send(&row, false, &limited, now), expected);
    }
}

#[test]
fn delays_grow_until_the_delivery_period_ends() {
    let mut total = 0;
    let mut attempts = 0;
    loop {
        let (row, now) = row(attempts, total);
        match after_send(&row, false, &unavailable(), now) {
            AfterSend::Retry { delay, .. } => total += delay.as_secs() as i64,
            AfterSend::Bury => break,
            other => panic!("{other:?}"),
        }
        attempts += 1;
    }
    assert!(total >= DELIVERY_PERIOD.as_secs() as i64);
    assert!((300..500).contains(&attempts), "{attempts}");
    let (row, now) = row(0, 0);
    let refused = PlatformError::Refused("blocked".to_owned());
    assert_eq!(after_send(&row, false, &refused, now), AfterSend::Bury);
}

#[test]
fn file_is_abandoned_after_five_attempts_and_text_is_not() {
    for (attempts, is_abandoned) in [(0, false), (3, false), (4, true), (9, true)] {
        let (row, now) = row(attempts, 60);
        let after = after_send(&row, true, &unavailable(), now);
        assert_eq!(
            matches!(after, AfterSend::Abandon { .. }),
            is_abandoned,
            "{after:?}"
        );
        let of_text = after_send(&row, false, &unavailable(), now);
        assert!(matches!(of_text, AfterSend::Retry { .. }), "{of_text:?}");
        let limited = after_send(&row, true, &limited(33, false), now);
        assert!(matches!(limited, AfterSend::Retry { .. }), "{limited:?}");
    }
}
