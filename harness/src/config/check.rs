//! Collects what is out of bounds in a configuration, each finding under its dotted key.

use std::fmt::{self, Display};
use std::ops::{Bound, RangeBounds};

/// One value that its section does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where the value stands, outermost key first; list positions are decimal numbers.
    pub path: Vec<String>,
    /// The value as it was understood.
    pub found: String,
    /// What would have been accepted.
    pub allowed: String,
}

impl Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is {}, allowed: {}",
            dotted(&self.path),
            self.found,
            self.allowed
        )
    }
}

/// Writes a path the way people write it: `models[0].name`.
pub fn dotted<S: AsRef<str>>(path: &[S]) -> String {
    let mut text = String::new();
    for segment in path.iter().map(AsRef::as_ref) {
        let is_index = !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit());
        if is_index && !text.is_empty() {
            text.push_str(&format!("[{segment}]"));
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(segment);
        }
    }
    text
}

/// Walks the sections with the current path and keeps every violation, not only the first.
#[derive(Debug, Default)]
pub(super) struct Checker {
    path: Vec<String>,
    violations: Vec<Violation>,
}

impl Checker {
    /// Runs `check` with `key` appended to the path.
    pub(super) fn under(&mut self, key: impl ToString, check: impl FnOnce(&mut Self)) {
        self.path.push(key.to_string());
        check(self);
        self.path.pop();
    }

    /// Demands that `value` lies in `range`.
    pub(super) fn within<T: PartialOrd + Display>(
        &mut self,
        key: &str,
        value: T,
        range: impl RangeBounds<T>,
    ) {
        if !range.contains(&value) {
            self.refuse(key, value, describe(&range));
        }
    }

    /// As [`Checker::within`], where an absent value is fine.
    pub(super) fn within_if_set<T: PartialOrd + Display + Copy>(
        &mut self,
        key: &str,
        value: Option<T>,
        range: impl RangeBounds<T>,
    ) {
        if let Some(value) = value {
            self.within(key, value, range);
        }
    }

    /// Demands a number above zero.
    pub(super) fn positive(&mut self, key: &str, value: f64) {
        if value.is_nan() || value <= 0.0 {
            self.refuse(key, value, "a number above 0");
        }
    }

    /// Demands some text.
    pub(super) fn not_blank(&mut self, key: &str, value: &str) {
        if value.trim().is_empty() {
            self.refuse(key, "empty", "some text");
        }
    }

    /// Records that `key` holds `found` where only `allowed` is.
    pub(super) fn refuse(&mut self, key: &str, found: impl Display, allowed: impl Display) {
        let mut path = self.path.clone();
        path.push(key.to_owned());
        self.violations.push(Violation {
            path,
            found: found.to_string(),
            allowed: allowed.to_string(),
        });
    }

    /// What was found, in the order of the checks.
    pub(super) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }
}

fn describe<T: Display>(range: &impl RangeBounds<T>) -> String {
    match (range.start_bound(), range.end_bound()) {
        (Bound::Included(low), Bound::Included(high)) => format!("{low} to {high}"),
        (Bound::Included(low), Bound::Excluded(high)) => format!("{low} to below {high}"),
        (Bound::Included(low), Bound::Unbounded) => format!("at least {low}"),
        (Bound::Unbounded, Bound::Included(high)) => format!("at most {high}"),
        (Bound::Unbounded, Bound::Excluded(high)) => format!("below {high}"),
        (Bound::Excluded(low), _) => format!("above {low}"),
        (Bound::Unbounded, Bound::Unbounded) => "anything".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_positions_reads_like_code() {
        assert_eq!(dotted(&["models", "0", "name"]), "models[0].name");
        assert_eq!(dotted(&["title", "max_words"]), "title.max_words");
        assert_eq!(dotted::<&str>(&[]), "");
    }

    #[test]
    fn every_violation_is_kept_with_its_path_and_bounds() {
        let mut check = Checker::default();
        check.under("title", |check| {
            check.within("max_words", 99, 1..=20);
            check.within("max_chars", 60, 10..=200);
            check.positive("pause", f64::NAN);
        });
        check.within_if_set("limit", Some(0), 1..);
        let texts: Vec<String> = check
            .into_violations()
            .iter()
            .map(Violation::to_string)
            .collect();
        assert_eq!(
            texts,
            [
                "`title.max_words` is 99, allowed: 1 to 20",
                "`title.pause` is NaN, allowed: a number above 0",
                "`limit` is 0, allowed: at least 1",
            ]
        );
    }
}
