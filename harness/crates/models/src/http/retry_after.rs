//! Parses the retry delay in response headers, in the three forms that providers use.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// Returns the delay in `retry-after-ms`, else in `retry-after` as seconds or an HTTP date. A past
/// date means no delay. Returns `None` for invalid values.
pub fn retry_after<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    now: DateTime<Utc>,
) -> Option<Duration> {
    if let Some(millis) = header("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let value = header("retry-after")?.trim();
    match number(value) {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => {
            let date = DateTime::parse_from_rfc2822(value).ok()?;
            Some(date.signed_duration_since(now).to_std().unwrap_or_default())
        }
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim()
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_parses_seconds_milliseconds_and_dates() {
        let now = DateTime::parse_from_rfc3339("2026-11-21T12:00:00Z")
            .unwrap()
            .to_utc();
        let read = |name: &'static str, value: &'static str| {
            retry_after(|header_name| (header_name == name).then_some(value), now)
                .map(|wait| wait.as_millis())
        };
        let table = [
            ("retry-after", "2", Some(2000)),
            ("retry-after", " 0.5 ", Some(500)),
            ("retry-after-ms", "750", Some(750)),
            ("retry-after", "Sat, 21 Nov 2026 12:00:30 GMT", Some(30_000)),
            ("retry-after", "Sat, 21 Nov 2026 11:00:00 GMT", Some(0)),
            ("retry-after", "soon", None),
            ("retry-after", "-3", None),
            ("retry-after", "1e400", None),
            ("retry-after-ms", "NaN", None),
            ("x", "1", None),
        ];
        for (name, value, expected) in table {
            assert_eq!(read(name, value), expected, "{name}: {value}");
        }
    }
}
