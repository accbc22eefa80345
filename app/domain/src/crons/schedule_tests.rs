//! Tests of cron expressions, time zones and end times.

use super::*;

fn moment(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

fn next(fields: &str, zone: &str, after: &str) -> String {
    Schedule::parse(fields, Some(zone))
        .unwrap()
        .next(moment(after), None)
        .unwrap()
        .to_rfc3339()
}

#[test]
fn fields_are_evaluated_in_time_zone() {
    assert_eq!(
        next("0 12 * * *", "UTC", "2026-11-21T12:00:00Z"),
        "2026-11-22T12:00:00+00:00"
    );
    assert_eq!(
        next("0 12 * * *", "Asia/Tokyo", "2026-11-21T04:00:00Z"),
        "2026-11-22T03:00:00+00:00"
    );
    assert_eq!(
        next("*/5 * * * *", "UTC", "2026-11-21T08:47:44.5Z"),
        "2026-11-21T08:50:00+00:00"
    );
    assert_eq!(
        next("30 9 * * MON-FRI", "UTC", "2026-11-20T10:00:00Z"),
        "2026-11-23T09:30:00+00:00"
    );
    assert_eq!(
        next("0 0 29 2 *", "UTC", "2026-11-20T10:00:00Z"),
        "2028-02-29T00:00:00+00:00"
    );
}

#[test]
fn a_day_with_a_changed_clock_still_fires_once() {
    // 02:30 does not exist in Paris on the last Sunday of March.
    assert_eq!(
        next("0 12 * * *", "Europe/Paris", "2026-03-28T11:00:01Z"),
        "2026-03-29T10:00:00+00:00"
    );
    let spring = next("30 2 * * *", "Europe/Paris", "2026-03-28T12:00:00Z");
    assert!(
        spring.starts_with("2026-03-29") || spring.starts_with("2026-03-30"),
        "{spring}"
    );
    let autumn = next("30 2 * * *", "Europe/Paris", "2026-10-24T12:00:00Z");
    assert_eq!(autumn, "2026-10-25T00:30:00+00:00");
    assert_eq!(
        next("30 2 * * *", "Europe/Paris", &autumn),
        "2026-10-26T01:30:00+00:00"
    );
}

#[test]
fn end_time_is_inclusive() {
    let schedule = Schedule::parse("0 * * * *", None).unwrap();
    let at = |text| schedule.next(moment("2026-11-21T08:10:00Z"), Some(moment(text)));
    assert_eq!(
        at("2026-11-21T09:00:00Z"),
        Some(moment("2026-11-21T09:00:00Z"))
    );
    assert_eq!(at("2026-11-21T08:59:59Z"), None);
}

#[test]
fn invalid_schedules_are_rejected() {
    for fields in [
        "",
        "not cron",
        "* * * *",
        "* * * * * *",
        "@daily",
        "61 * * * *",
        "0 0 30 2 *",
        "a b c d e",
        &"*".repeat(999),
    ] {
        assert!(
            matches!(Schedule::parse(fields, None), Err(ScheduleError::Fields(_))),
            "{fields}"
        );
    }
    assert_eq!(
        Schedule::parse("* * * * *", Some("Mars/Base")).unwrap_err(),
        ScheduleError::Zone("Mars/Base".to_owned())
    );
}
