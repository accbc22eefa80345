//! The section `scheduler`: whether and how scheduled tasks fire. Crons do not depend on it.

use std::time::Duration;

use anyhow::bail;
use chrono::TimeDelta;
use harness::config::AppConfig;
use serde_json::{Map, Value};

/// Settings of scheduled tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SchedulerSettings {
    /// `true` if tasks fire by their schedules.
    pub(crate) enabled: bool,
    /// Interval between polls for due tasks.
    pub(crate) poll_interval: Duration,
    /// Minimum delay of a task that runs once.
    pub(crate) min_once_delay: TimeDelta,
}

/// Maximum of both times, in seconds: one day.
const MAX_SECONDS: u32 = 86_400;

impl SchedulerSettings {
    /// Reads the section.
    ///
    /// # Errors
    /// A value of another type, or outside of its range.
    pub(crate) fn of(config: &AppConfig) -> anyhow::Result<Self> {
        match config.untyped("scheduler") {
            None | Some(Value::Null) => Self::read(&Map::new()),
            Some(Value::Object(section)) => Self::read(section),
            Some(_) => bail!("`scheduler` must be a map"),
        }
    }

    fn read(section: &Map<String, Value>) -> anyhow::Result<Self> {
        Ok(Self {
            enabled: flag(section, "enabled")?,
            poll_interval: Duration::from_secs(
                seconds(section, "poll_interval_seconds", 5, 1)?.into(),
            ),
            min_once_delay: TimeDelta::seconds(
                seconds(section, "min_once_delay_seconds", 60, 0)?.into(),
            ),
        })
    }
}

/// Reads a boolean, `false` if absent. It may be written as text.
fn flag(section: &Map<String, Value>, key: &str) -> anyhow::Result<bool> {
    match section.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(value)) => Ok(*value),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
        Some(other) => bail!("`scheduler.{key}` is {other}, allowed: true or false"),
    }
}

/// Reads a number of seconds of at least `least`. It may be written as text.
fn seconds(
    section: &Map<String, Value>,
    key: &str,
    default: u32,
    least: u32,
) -> anyhow::Result<u32> {
    let number = match section.get(key) {
        None | Some(Value::Null) => return Ok(default),
        Some(Value::String(text)) => text.parse().ok(),
        Some(other) => other.as_u64().and_then(|number| u32::try_from(number).ok()),
    };
    match number {
        Some(number) if (least..=MAX_SECONDS).contains(&number) => Ok(number),
        _ => bail!(
            "`scheduler.{key}` is {}, allowed: {least} to {MAX_SECONDS}",
            section[key]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(section: Value) -> Result<SchedulerSettings, String> {
        let section = section.as_object().unwrap();
        SchedulerSettings::read(section).map_err(|error| error.to_string())
    }

    #[test]
    fn absent_scheduler_settings_have_defaults() {
        let settings = read(json!({})).unwrap();
        assert_eq!(
            settings,
            SchedulerSettings {
                enabled: false,
                poll_interval: Duration::from_secs(5),
                min_once_delay: TimeDelta::seconds(60),
            }
        );
    }

    #[test]
    fn scheduler_settings_are_read() {
        let section = json!({
            "enabled": "true", "poll_interval_seconds": 2, "min_once_delay_seconds": "0", "lease_seconds": 9,
        });
        let settings = read(section).unwrap();
        assert_eq!(
            settings,
            SchedulerSettings {
                enabled: true,
                poll_interval: Duration::from_secs(2),
                min_once_delay: TimeDelta::zero(),
            }
        );
    }

    #[test]
    fn invalid_scheduler_settings_are_named() {
        assert_eq!(
            read(json!({ "poll_interval_seconds": 0 })).unwrap_err(),
            "`scheduler.poll_interval_seconds` is 0, allowed: 1 to 86400"
        );
        assert_eq!(
            read(json!({ "enabled": 3 })).unwrap_err(),
            "`scheduler.enabled` is 3, allowed: true or false"
        );
    }
}
