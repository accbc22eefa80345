//! Reads the settings of one tool entry, with errors that name the setting.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::Value;

use crate::config::ToolConfig;

/// Maximum value of a duration setting, in seconds.
const MAX_SECONDS: f64 = 600.0;

/// Environment variables by name.
pub type Variables = HashMap<String, String>;

/// Error of an entry that does not describe a valid web tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tool `{tool}`: {why}")]
pub struct InvalidWebTool {
    /// Name of the entry.
    pub tool: String,
    /// Description of the problem.
    pub why: String,
}

/// One entry, with the environment as fallback for missing keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings<'a> {
    entry: &'a ToolConfig,
    variables: &'a Variables,
}

impl<'a> Settings<'a> {
    pub(super) fn new(entry: &'a ToolConfig, variables: &'a Variables) -> Self {
        Self { entry, variables }
    }

    /// Returns the secret under one of `names`, or else of the environment variable `variable`.
    pub(super) fn key(&self, names: &[&str], variable: &str) -> Option<SecretString> {
        let own = names.iter().find_map(|name| self.entry.extra.secret(name));
        own.or_else(|| {
            self.variables
                .get(variable)
                .filter(|value| !value.trim().is_empty())
                .map(|value| SecretString::from(value.trim()))
        })
    }

    /// Same as [`Settings::key`], for a provider that requires a key.
    pub(super) fn required_key(&self, variable: &str) -> Result<SecretString, InvalidWebTool> {
        self.key(&["api_key"], variable).ok_or_else(|| {
            self.invalid(format!(
                "it needs an `api_key`, or {variable} in the environment"
            ))
        })
    }

    /// Returns the provider's base URL from `base_url`, the environment variable or `default`, and
    /// `true` if it is not the default.
    pub(super) fn base_url(&self, variable: Option<&str>, default: &str) -> (String, bool) {
        let configured = self
            .text("base_url")
            .or_else(|| self.text("api_url"))
            .map(str::to_owned);
        let configured = configured.or_else(|| {
            self.variables
                .get(variable?)
                .filter(|value| !value.trim().is_empty())
                .cloned()
        });
        let own = configured.is_some();
        (configured.unwrap_or_else(|| default.to_owned()), own)
    }

    /// Reports whether `key` is set.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entry
            .extra
            .get(key)
            .is_some_and(|value| !value.is_null())
    }

    /// Returns the text under `key`.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.entry.extra.text(key)
    }

    /// Returns the list of texts under `key`; a single text is a list of one.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, InvalidWebTool> {
        let unusable = || self.invalid(format!("`{key}` must be a list of texts"));
        match self.entry.extra.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(one)) => Ok(vec![one.clone()]),
            Some(Value::Array(list)) => list
                .iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(unusable))
                .collect(),
            Some(_) => Err(unusable()),
        }
    }

    /// Returns the boolean under `key`.
    pub(super) fn switch(&self, key: &str, default: bool) -> Result<bool, InvalidWebTool> {
        match self.entry.extra.get(key) {
            None | Some(Value::Null) => Ok(default),
            Some(Value::Bool(on)) => Ok(*on),
            Some(_) => Err(self.invalid(format!("`{key}` must be true or false"))),
        }
    }

    /// Returns the integer under `key`, if it is set.
    pub(super) fn count(
        &self,
        key: &str,
        range: RangeInclusive<usize>,
    ) -> Result<Option<usize>, InvalidWebTool> {
        let Some(number) = self.number(key)? else {
            return Ok(None);
        };
        let whole = Some(number)
            .filter(|number| number.fract() == 0.0 && *number >= 0.0 && *number < 1e9)
            .map(|number| number as usize);
        match whole.filter(|count| range.contains(count)) {
            Some(count) => Ok(Some(count)),
            None => Err(self.invalid(format!(
                "`{key}` is {number}, allowed: {} to {}",
                range.start(),
                range.end()
            ))),
        }
    }

    /// Returns the number under `key`, also if it is written as text.
    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, InvalidWebTool> {
        let number = match self.entry.extra.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        number
            .filter(|number| number.is_finite())
            .map(Some)
            .ok_or_else(|| self.invalid(format!("`{key}` must be a number")))
    }

    /// Returns the duration under the first of `keys` that is set, in seconds.
    pub(super) fn seconds(&self, keys: &[&str], default: u64) -> Result<Duration, InvalidWebTool> {
        for key in keys {
            match self.number(key)? {
                None => {}
                Some(seconds) if seconds > 0.0 && seconds <= MAX_SECONDS => {
                    return Ok(Duration::from_secs_f64(seconds));
                }
                Some(seconds) => {
                    return Err(self.invalid(format!(
                        "`{key}` is {seconds}, allowed: above 0 to {MAX_SECONDS}"
                    )));
                }
            }
        }
        Ok(Duration::from_secs(default))
    }

    /// Creates an error about this entry.
    pub(super) fn invalid(&self, why: impl Into<String>) -> InvalidWebTool {
        InvalidWebTool {
            tool: self.entry.name.clone(),
            why: why.into(),
        }
    }
}
