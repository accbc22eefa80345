//! Times of a task: one time, or a cron expression in a time zone.

use chrono::{DateTime, LocalResult, NaiveDateTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use crate::crons::{Schedule, ScheduleError};

/// Times at which a task fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskSchedule {
    /// One time.
    Once(DateTime<Utc>),
    /// Cron expression with five fields, in the task's time zone.
    Cron(String),
}

/// Reason why a schedule is invalid. The texts are those of the contract where it has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// The expression has not five fields.
    #[error("Cron expression must contain exactly 5 fields")]
    FieldCount,
    /// The expression is invalid, or never matches.
    #[error("Invalid cron expression: {0}")]
    Fields(String),
    /// The time zone is unknown.
    #[error("Unknown timezone: {0}")]
    Zone(String),
    /// The text is no time.
    #[error("Invalid run_at: {0}. Use an ISO 8601 date-time.")]
    RunAt(String),
    /// The time is in the past.
    #[error("once schedule must be in the future")]
    Past,
    /// The time is in the future, but too close.
    #[error("once schedule must be at least {0} seconds in the future")]
    TooSoon(i64),
}

/// Maximum number of characters of a value that an error repeats.
const SHOWN: usize = 80;
/// Maximum length of a gap in local time that is searched for its end, in minutes.
const MAX_GAP_MINUTES: i64 = 26 * 60;

fn shown(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}

fn zone_of(name: &str) -> Result<Tz, TimingError> {
    name.parse().map_err(|_| TimingError::Zone(shown(name)))
}

impl TaskSchedule {
    /// Returns the schedule's type as clients see it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Once(_) => "once",
            Self::Cron(_) => "cron",
        }
    }

    /// Parses a cron expression for a time zone.
    pub fn cron(fields: &str, zone: &str) -> Result<Self, TimingError> {
        zone_of(zone)?;
        if fields.split_whitespace().count() != 5 {
            return Err(TimingError::FieldCount);
        }
        parsed(fields, zone)?;
        Ok(Self::Cron(fields.to_owned()))
    }

    /// Parses a time with an offset, or a local time of the zone. A local time that is skipped is
    /// the next one that exists; of one that occurs twice, the first.
    pub fn once(text: &str, zone: &str) -> Result<Self, TimingError> {
        let zone = zone_of(zone)?;
        let moment = match DateTime::parse_from_rfc3339(text) {
            Ok(moment) => Some(moment.to_utc()),
            Err(_) => naive(text).and_then(|local| resolve(local, zone)),
        };
        // Stores represent times as microseconds since 1970 in 64 bits.
        moment
            .filter(|moment| (0..=9_999).contains(&chrono::Datelike::year(moment)))
            .map(Self::Once)
            .ok_or_else(|| TimingError::RunAt(shown(text)))
    }

    /// Returns the same schedule for another time zone. A single time does not move.
    pub fn in_zone(&self, zone: &str) -> Result<Self, TimingError> {
        match self {
            Self::Once(_) => zone_of(zone).map(|_| self.clone()),
            Self::Cron(fields) => Self::cron(fields, zone),
        }
    }

    /// Checks that a single time is at least `min_delay` in the future.
    pub fn require_future(
        &self,
        now: DateTime<Utc>,
        min_delay: TimeDelta,
    ) -> Result<(), TimingError> {
        match self {
            Self::Once(at) if *at <= now => Err(TimingError::Past),
            Self::Once(at) if *at - now < min_delay => {
                Err(TimingError::TooSoon(min_delay.num_seconds()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the first time after `after`.
    pub fn next(&self, zone: &str, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self {
            Self::Once(at) => Some(*at).filter(|at| *at > after),
            Self::Cron(fields) => parsed(fields, zone).ok()?.next(after, None),
        }
    }
}

fn parsed(fields: &str, zone: &str) -> Result<Schedule, TimingError> {
    Schedule::parse(fields, Some(zone)).map_err(|error| match error {
        ScheduleError::Fields(fields) => TimingError::Fields(fields),
        ScheduleError::Zone(zone) => TimingError::Zone(zone),
    })
}

/// Parses a local time with or without seconds.
fn naive(text: &str) -> Option<NaiveDateTime> {
    [
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M",
    ]
    .iter()
    .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
}

/// Returns the first existing time at or after a local time.
fn resolve(local: NaiveDateTime, zone: Tz) -> Option<DateTime<Utc>> {
    (0..=MAX_GAP_MINUTES).find_map(|minutes| {
        // Beyond the first minute the seconds are dropped: the gap ends at a full minute.
        let at = local.checked_add_signed(TimeDelta::minutes(minutes))?;
        let at = if minutes == 0 {
            at
        } else {
            chrono::Timelike::with_nanosecond(&chrono::Timelike::with_second(&at, 0)?, 0)?
        };
        match zone.from_local_datetime(&at) {
            LocalResult::Single(moment) | LocalResult::Ambiguous(moment, _) => {
                Some(moment.to_utc())
            }
            LocalResult::None => None,
        }
    })
}

#[cfg(test)]
#[path = "timing_tests.rs"]
mod tests;
