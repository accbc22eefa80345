//! Query parameters: repeated ones, lists as JSON text, numbers and flags.

use std::num::IntErrorKind;
use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde_json::{Value, json};

use super::issues::{number_issue, range_issue};
use crate::error::{ApiError, Issue};
use crate::state::GatewayState;

/// The query of a request.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, String)>);

impl FromRequestParts<Arc<GatewayState>> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        _state: &Arc<GatewayState>,
    ) -> Result<Self, ApiError> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(pairs)| Self(pairs))
            .map_err(|error| ApiError::BadRequest(format!("invalid query string: {error}")))
    }
}

impl Query {
    /// Returns the last value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns a list: a repeated parameter, comma-separated values, or one JSON list.
    pub fn list(&self, name: &str) -> Vec<String> {
        let mut list = Vec::new();
        for (_, value) in self
            .0
            .iter()
            .filter(|(key, _)| key == name || key.strip_suffix("[]") == Some(name))
        {
            match serde_json::from_str::<Vec<String>>(value) {
                Ok(words) => list.extend(words),
                Err(_) => list.extend(
                    value
                        .split(',')
                        .map(str::trim)
                        .filter(|word| !word.is_empty())
                        .map(str::to_owned),
                ),
            }
        }
        list
    }

    /// Returns an integer within `range`.
    pub fn number(&self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let loc = || vec!["query".into(), name.into()];
        let number = whole_number(text)
            .ok_or_else(|| ApiError::issue(number_issue(loc(), &text.into(), range.clone())))?;
        match u64::try_from(number)
            .ok()
            .filter(|number| range.contains(number))
        {
            Some(number) => Ok(Some(number)),
            None => Err(ApiError::issue(range_issue(
                loc(),
                number,
                range,
                &number_json(number, text),
            ))),
        }
    }

    /// Returns an integer from `-max_abs` to `max_abs`.
    pub fn signed(&self, name: &str, max_abs: u64) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        let number = whole_number(text);
        match number.and_then(|number| i64::try_from(number).ok()) {
            Some(number) if number.unsigned_abs() <= max_abs => Ok(Some(number)),
            _ => {
                let loc = vec!["query".into(), name.into()];
                let input =
                    number.map_or_else(|| Value::from(text), |number| number_json(number, text));
                let issue = Issue::new(
                    "int_range",
                    loc,
                    format!("Input should be a valid integer from -{max_abs} to {max_abs}"),
                    &input,
                );
                Err(ApiError::issue(issue))
            }
        }
    }

    /// Returns a boolean, in any spelling that clients use.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.get(name).map(str::to_ascii_lowercase).as_deref() {
            None | Some("") => Ok(None),
            Some("1" | "true" | "yes" | "on") => Ok(Some(true)),
            Some("0" | "false" | "no" | "off") => Ok(Some(false)),
            Some(other) => {
                let loc = vec!["query".into(), name.into()];
                Err(ApiError::issue(Issue::new(
                    "bool_parsing",
                    loc,
                    "Input should be a valid boolean",
                    &other.into(),
                )))
            }
        }
    }

    /// Returns the value of a parameter that must be in `words`.
    pub fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, ApiError> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => {
                let expected = words
                    .iter()
                    .map(|(word, _)| format!("'{word}'"))
                    .collect::<Vec<_>>()
                    .join(" or ");
                let loc = vec!["query".into(), name.into()];
                let issue = Issue::new(
                    "literal_error",
                    loc,
                    format!("Input should be {expected}"),
                    &text.into(),
                );
                Err(ApiError::issue(issue.ctx(json!({ "expected": expected }))))
            }
        }
    }
}

/// Parses an integer; one beyond 128 bits is clamped, so that it is outside of every range.
fn whole_number(text: &str) -> Option<i128> {
    match text.trim().parse::<i128>() {
        Ok(number) => Some(number),
        Err(error) => match error.kind() {
            IntErrorKind::PosOverflow => Some(i128::MAX),
            IntErrorKind::NegOverflow => Some(i128::MIN),
            _ => None,
        },
    }
}

/// Returns the number as errors echo it: as text if it does not fit into 64 bits.
fn number_json(number: i128, text: &str) -> Value {
    match (i64::try_from(number), u64::try_from(number)) {
        (Ok(number), _) => number.into(),
        (_, Ok(number)) => number.into(),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        let uri = format!("/x?{text}").parse().expect("a uri");
        Query(axum::extract::Query::try_from_uri(&uri).expect("a query").0)
    }

    #[test]
    fn list_is_repeated_json_or_comma_separated() {
        for text in [
            "m=a&m=b",
            "m=a,b",
            "m=%5B%22a%22%2C%22b%22%5D",
            "m[]=a&m[]=b",
        ] {
            assert_eq!(query(text).list("m"), ["a", "b"], "{text}");
        }
        assert!(query("x=1").list("m").is_empty());
    }

    #[test]
    fn numbers_and_flags_are_checked() {
        assert_eq!(query("n=5").number("n", 1..=9), Ok(Some(5)));
        assert_eq!(query("").number("n", 1..=9), Ok(None));
        for bad in [
            "n=many",
            "n=0",
            "n=10",
            "n=-1",
            "n=1e3",
            "n=99999999999999999999",
        ] {
            assert!(query(bad).number("n", 1..=9).is_err(), "{bad}");
        }
        let kind = |text: &str| match query(text).number("n", 1..=9) {
            Err(ApiError::Invalid(issues)) => issues[0].kind,
            other => panic!("{text}: {other:?}"),
        };
        for (text, expected) in [
            ("n=99999999999999999999", "less_than_equal"),
            ("n=-99999999999999999999", "greater_than_equal"),
            ("n=18446744073709551615", "less_than_equal"),
            (&format!("n={}", "9".repeat(100)), "less_than_equal"),
            (&format!("n=-{}", "9".repeat(100)), "greater_than_equal"),
            ("n=1e400", "int_type"),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
        assert_eq!(
            query("n=18446744073709551615").number("n", 0..=u64::MAX),
            Ok(Some(u64::MAX))
        );
        assert_eq!(query("n=-840").signed("n", 840), Ok(Some(-840)));
        for bad in ["n=841", "n=-841", "n=x", "n=-9223372036854775808", "n="] {
            assert!(query(bad).signed("n", 840).is_err(), "{bad}");
        }
        assert_eq!(query("w=TRUE").flag("w"), Ok(Some(true)));
        assert!(query("w=perhaps").flag("w").is_err());
    }
}
