//! When a schedule fires: five fields, read by the clock of a time zone.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds, Year};

/// A schedule that was understood.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: croner::Cron,
    zone: Tz,
}

/// What is no schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The fields.
    #[error(
        "Invalid cron schedule: '{0}'. Reason: Invalid cron schedule. Ensure the schedule uses the standard cron format (minute hour \
         day_of_month month day_of_week). Example: '*/5 * * * *' for every 5 minutes."
    )]
    Fields(String),
    /// The time zone.
    #[error("Invalid timezone: '{0}'. Use IANA timezone format (e.g. 'America/New_York').")]
    Zone(String),
}

/// What is longer is no schedule.
const LONGEST: usize = 256;

impl Schedule {
    /// Reads five fields and the name of a time zone, UTC without. What never fires is no schedule.
    pub fn parse(fields: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let refused = || ScheduleError::Fields(fields.chars().take(80).collect());
        if fields.len() > LONGEST || fields.split_whitespace().count() != 5 || fields.contains('@')
        {
            return Err(refused());
        }
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let cron = parser.parse(fields).map_err(|_| refused())?;
        let zone = match zone {
            None => Tz::UTC,
            Some(name) => name
                .parse()
                .map_err(|_| ScheduleError::Zone(name.chars().take(80).collect()))?,
        };
        let schedule = Self { cron, zone };
        schedule
            .next(DateTime::UNIX_EPOCH, None)
            .map(|_| schedule.clone())
            .ok_or_else(refused)
    }

    /// The first moment after `after` at which it fires, if that is not after `end`.
    pub fn next(&self, after: DateTime<Utc>, end: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        let next = self
            .cron
            .find_next_occurrence(&after.with_timezone(&self.zone), false)
            .ok()?
            .to_utc();
        Some(next).filter(|next| end.is_none_or(|end| *next <= end))
    }
}

#[cfg(test)]
mod tests {
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
    fn fields_mean_the_clock_of_their_zone() {
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
        // Half past two does not exist in Paris on the last Sunday of March.
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
    fn the_end_is_the_last_chance() {
        let schedule = Schedule::parse("0 * * * *", None).unwrap();
        let at = |text| schedule.next(moment("2026-11-21T08:10:00Z"), Some(moment(text)));
        assert_eq!(
            at("2026-11-21T09:00:00Z"),
            Some(moment("2026-11-21T09:00:00Z"))
        );
        assert_eq!(at("2026-11-21T08:59:59Z"), None);
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
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
}
