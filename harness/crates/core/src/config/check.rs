//! Collects all violations of a configuration with their dotted keys.

use std::fmt::{self, Display};
use std::ops::{Bound, RangeBounds};

/// Value that its section does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path to the value, outermost key first; list positions are decimal numbers.
    pub path: Vec<String>,
    /// Configured value, or a description of it.
    pub found: String,
    /// Allowed values.
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

/// Formats a path as `models[0].name`.
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

/// Checks the sections with the current path and collects every violation.
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

    /// Requires `value` to be in `range`.
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

    /// As [`Checker::within`], but accepts an absent value.
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

    /// Requires a number above zero.
    pub(super) fn positive(&mut self, key: &str, value: f64) {
        if value.is_nan() || value <= 0.0 {
            self.refuse(key, value, "a number above 0");
        }
    }

    /// Requires a non-blank text.
    pub(super) fn not_blank(&mut self, key: &str, value: &str) {
        if value.trim().is_empty() {
            self.refuse(key, "empty", "some text");
        }
    }

    /// Records a violation: the value of `key` is `found`, and only `allowed` is valid.
    pub(super) fn refuse(&mut self, key: &str, found: impl Display, allowed: impl Display) {
        let mut path = self.path.clone();
        path.push(key.to_owned());
        self.violations.push(Violation {
            path,
            found: found.to_string(),
            allowed: allowed.to_string(),
        });
    }

    /// Returns the violations in the order of the checks.
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
    fn dotted_formats_list_positions() {
        assert_eq!(dotted(&["models", "0", "name"]), "models[0].name");
        assert_eq!(dotted(&["title", "max_words"]), "title.max_words");
        assert_eq!(dotted::<&str>(&[]), "");
    }

    #[test]
    fn all_violations_are_collected_with_path_and_bounds() {
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
