//! The keys of one tool entry, read with errors that name them.

use std::ops::RangeInclusive;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::Value;

use super::kit::{BadTool, Variables};
use crate::config::ToolConfig;

/// The longest anything may be set to take, in seconds.
const LONGEST: f64 = 600.0;

/// One entry, and the environment for keys that it does not have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings<'a> {
    entry: &'a ToolConfig,
    variables: &'a Variables,
}

impl<'a> Settings<'a> {
    pub(super) fn new(entry: &'a ToolConfig, variables: &'a Variables) -> Self {
        Self { entry, variables }
    }

    /// The key under `names`, or in `variable`.
    pub(super) fn key(&self, names: &[&str], variable: &str) -> Option<SecretString> {
        let own = names.iter().find_map(|name| self.entry.extra.secret(name));
        own.or_else(|| {
            self.variables
                .get(variable)
                .filter(|value| !value.trim().is_empty())
                .map(|value| SecretString::from(value.trim()))
        })
    }

    /// As [`Settings::key`], for a provider that answers nobody without one.
    pub(super) fn required_key(&self, variable: &str) -> Result<SecretString, BadTool> {
        self.key(&["api_key"], variable).ok_or_else(|| {
            self.bad(format!(
                "it needs an `api_key`, or {variable} in the environment"
            ))
        })
    }

    /// Where the provider is: `base_url`, `variable` or `usual`, and whether that was said.
    pub(super) fn base_url(&self, variable: Option<&str>, usual: &str) -> (String, bool) {
        let said = self
            .text("base_url")
            .or_else(|| self.text("api_url"))
            .map(str::to_owned);
        let said = said.or_else(|| {
            self.variables
                .get(variable?)
                .filter(|value| !value.trim().is_empty())
                .cloned()
        });
        let own = said.is_some();
        (said.unwrap_or_else(|| usual.to_owned()), own)
    }

    /// Whether anything stands under `key`.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entry
            .extra
            .get(key)
            .is_some_and(|value| !value.is_null())
    }

    /// The text under `key`.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.entry.extra.text(key)
    }

    /// The texts of the list under `key`; one text is a list of one.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, BadTool> {
        let unusable = || self.bad(format!("`{key}` must be a list of texts"));
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

    /// The switch under `key`.
    pub(super) fn switch(&self, key: &str, usual: bool) -> Result<bool, BadTool> {
        match self.entry.extra.get(key) {
            None | Some(Value::Null) => Ok(usual),
            Some(Value::Bool(on)) => Ok(*on),
            Some(_) => Err(self.bad(format!("`{key}` must be true or false"))),
        }
    }

    /// The whole number under `key`, if it is set.
    pub(super) fn count(
        &self,
        key: &str,
        range: RangeInclusive<usize>,
    ) -> Result<Option<usize>, BadTool> {
        let Some(number) = self.number(key)? else {
            return Ok(None);
        };
        let whole = Some(number)
            .filter(|number| number.fract() == 0.0 && *number >= 0.0 && *number < 1e9)
            .map(|number| number as usize);
        match whole.filter(|count| range.contains(count)) {
            Some(count) => Ok(Some(count)),
            None => Err(self.bad(format!(
                "`{key}` is {number}, allowed: {} to {}",
                range.start(),
                range.end()
            ))),
        }
    }

    /// The number under `key`, also one that is written as text.
    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, BadTool> {
        let number = match self.entry.extra.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        number
            .filter(|number| number.is_finite())
            .map(Some)
            .ok_or_else(|| self.bad(format!("`{key}` must be a number")))
    }

    /// The seconds under the first of `keys` that is set.
    pub(super) fn seconds(&self, keys: &[&str], usual: u64) -> Result<Duration, BadTool> {
        for key in keys {
            match self.number(key)? {
                None => {}
                Some(seconds) if seconds > 0.0 && seconds <= LONGEST => {
                    return Ok(Duration::from_secs_f64(seconds));
                }
                Some(seconds) => {
                    return Err(self.bad(format!(
                        "`{key}` is {seconds}, allowed: above 0 to {LONGEST}"
                    )));
                }
            }
        }
        Ok(Duration::from_secs(usual))
    }

    /// What is wrong with this entry.
    pub(super) fn bad(&self, why: impl Into<String>) -> BadTool {
        BadTool {
            tool: self.entry.name.clone(),
            why: why.into(),
        }
    }
}
