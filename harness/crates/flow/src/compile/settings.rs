//! Typed access to the settings of a node, which validation has checked.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::compiled::{Join, OnError, RetryPolicy};
use crate::kinds::KindDriver;

/// Settings of a node.
pub(super) struct Settings<'c>(pub(super) &'c Map<String, Value>);

impl Settings<'_> {
    /// Returns a text that is not blank.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        let text = self.0.get(key)?.as_str()?;
        (!text.trim().is_empty()).then(|| text.to_owned())
    }

    pub(super) fn integer(&self, key: &str) -> Option<u64> {
        self.0.get(key)?.as_u64()
    }

    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.0.get(key)?.as_f64()
    }

    pub(super) fn boolean(&self, key: &str) -> Option<bool> {
        self.0.get(key)?.as_bool()
    }

    /// Returns a value of a type that validation has checked.
    pub(super) fn parsed<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        T::deserialize(self.0.get(key)?).ok()
    }

    /// Returns the texts of a list.
    pub(super) fn texts(&self, key: &str) -> Vec<String> {
        let items = self.0.get(key).and_then(Value::as_array);
        let texts = items.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    /// Returns when a node starts.
    pub(super) fn join(&self, driver: Option<KindDriver>) -> Join {
        match self.0.get("join").and_then(Value::as_str) {
            Some("any") => Join::Any,
            Some("all") => Join::All,
            Some("defer") => Join::Defer,
            _ => match driver {
                Some(KindDriver::Join) => Join::All,
                Some(KindDriver::Finish) => Join::Defer,
                _ => Join::Any,
            },
        }
    }

    pub(super) fn retry(&self) -> RetryPolicy {
        let default = RetryPolicy::default();
        let Some(Value::Object(retry)) = self.0.get("retry") else {
            return default;
        };
        let retry = Settings(retry);
        RetryPolicy {
            max_attempts: retry
                .integer("maxAttempts")
                .and_then(|attempts| u32::try_from(attempts).ok())
                .unwrap_or(default.max_attempts),
            initial_interval_ms: retry
                .integer("initialIntervalMs")
                .unwrap_or(default.initial_interval_ms),
            backoff_factor: retry
                .number("backoffFactor")
                .unwrap_or(default.backoff_factor),
            max_interval_ms: retry
                .integer("maxIntervalMs")
                .unwrap_or(default.max_interval_ms),
            jitter: retry.boolean("jitter").unwrap_or(default.jitter),
        }
    }

    /// Returns the handling of a failure: that of the settings, else `Branch` if an edge leaves
    /// handle `error`.
    pub(super) fn on_error(&self, has_error_edge: bool) -> OnError {
        match self.0.get("onError").and_then(Value::as_str) {
            Some("continue") => {
                OnError::Continue(self.0.get("defaultOutput").cloned().unwrap_or_default())
            }
            Some("branch") => OnError::Branch,
            None if has_error_edge => OnError::Branch,
            _ => OnError::Fail,
        }
    }
}
