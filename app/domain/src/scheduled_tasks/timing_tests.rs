//! Tests of one-time and cron schedules in time zones with daylight saving.

use super::*;

fn moment(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).unwrap().to_utc()
}

fn once(text: &str, zone: &str) -> DateTime<Utc> {
    match TaskSchedule::once(text, zone).unwrap() {
        TaskSchedule::Once(at) => at,
        other => panic!("{other:?}"),
    }
}

fn next(fields: &str, zone: &str, after: &str) -> DateTime<Utc> {
    let schedule = TaskSchedule::cron(fields, zone).unwrap();
    schedule.next(zone, moment(after)).unwrap()
}

#[test]
fn local_time_is_read_in_the_zone() {
    for (text, expected) in [
        ("2026-07-02T09:00", "2026-07-02T07:00:00Z"),
        ("2026-07-02 09:00:30", "2026-07-02T07:00:30Z"),
        ("2026-07-02T09:00:00Z", "2026-07-02T09:00:00Z"),
        ("2026-07-02T09:00:00.5+09:00", "2026-07-02T00:00:00.5Z"),
    ] {
        assert_eq!(once(text, "Europe/Paris"), moment(expected), "{text}");
    }
}

#[test]
fn skipped_local_time_is_the_next_that_exists() {
    assert_eq!(
        once("2026-03-29T02:30:15", "Europe/Paris"),
        moment("2026-03-29T01:00:00Z")
    );
    assert_eq!(
        once("2026-10-25T02:30", "Europe/Paris"),
        moment("2026-10-25T00:30:00Z")
    );
}

#[test]
fn cron_time_that_is_skipped_fires_at_the_next_that_exists() {
    assert_eq!(
        next("30 2 * * *", "Europe/Paris", "2026-03-28T12:00:00Z"),
        moment("2026-03-29T01:00:00Z")
    );
    assert_eq!(
        next("30 2 * * *", "Europe/Paris", "2026-03-29T01:00:00Z"),
        moment("2026-03-30T00:30:00Z")
    );
}

#[test]
fn cron_time_that_occurs_twice_fires_once() {
    let first = next("30 2 * * *", "Europe/Paris", "2026-10-24T12:00:00Z");
    assert_eq!(first, moment("2026-10-25T00:30:00Z"));
    for after in ["2026-10-25T00:30:00Z", "2026-10-25T01:10:00Z"] {
        assert_eq!(
            next("30 2 * * *", "Europe/Paris", after),
            moment("2026-10-26T01:30:00Z")
        );
    }
}

#[test]
fn invalid_schedules_name_their_reason() {
    let cron = |fields, zone| TaskSchedule::cron(fields, zone).unwrap_err().to_string();
    assert_eq!(
        cron("* * * *", "UTC"),
        "Cron expression must contain exactly 5 fields"
    );
    assert_eq!(
        cron("* * * * *", "Mars/Base"),
        "Unknown timezone: Mars/Base"
    );
    assert_eq!(
        cron("61 * * * *", "UTC"),
        "Invalid cron expression: 61 * * * *"
    );
    assert!(matches!(
        TaskSchedule::once("soon", "UTC"),
        Err(TimingError::RunAt(_))
    ));
    assert!(matches!(
        TaskSchedule::once("+262142-01-01T00:00:00Z", "UTC"),
        Err(TimingError::RunAt(_))
    ));
}

#[test]
fn single_time_needs_the_minimum_delay() {
    let (now, least) = (moment("2026-01-01T00:00:00Z"), TimeDelta::seconds(60));
    let at = |text| once(text, "UTC");
    let check = |text| TaskSchedule::Once(at(text)).require_future(now, least);
    assert_eq!(check("2026-01-01T00:00:00Z"), Err(TimingError::Past));
    assert_eq!(check("2026-01-01T00:00:59Z"), Err(TimingError::TooSoon(60)));
    assert_eq!(check("2026-01-01T00:01:00Z"), Ok(()));
    assert_eq!(
        TaskSchedule::Cron("* * * * *".to_owned()).require_future(now, least),
        Ok(())
    );
}
