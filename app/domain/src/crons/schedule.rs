//! Cron expressions with five fields, evaluated in a time zone.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds, Year};

/// Parsed schedule.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: croner::Cron,
    zone: Tz,
}

/// Reason why a schedule is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The cron expression is invalid.
    #[error(
        "Invalid cron schedule: '{0}'. Reason: Invalid cron schedule. Ensure the schedule uses the standard cron format (minute hour \
         day_of_month month day_of_week). Example: '*/5 * * * *' for every 5 minutes."
    )]
    Fields(String),
    /// The time zone is unknown.
    #[error("Invalid timezone: '{0}'. Use IANA timezone format (e.g. 'America/New_York').")]
    Zone(String),
}

/// Maximum length of a cron expression, in bytes.
const MAX_LENGTH: usize = 256;

impl Schedule {
    /// Parses five fields and a time zone name, UTC if absent. Rejects schedules that never fire.
    pub fn parse(fields: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        let refused = || ScheduleError::Fields(fields.chars().take(80).collect());
        if fields.len() > MAX_LENGTH
            || fields.split_whitespace().count() != 5
            || fields.contains('@')
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

    /// Returns the first firing after `after` that is not after `end`.
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
#[path = "schedule_tests.rs"]
mod tests;
