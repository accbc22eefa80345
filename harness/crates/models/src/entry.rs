//! Model entry of the configuration, and the provider settings of one call.

use std::fmt;

use secrecy::SecretString;
use serde_json::{Map, Value, json};

use super::{ModelRequest, Pricing};

/// One entry of `models`. `Debug` prints the names of the provider keys but not their values, which
/// may be secrets.
#[derive(Clone, Default)]
pub struct ModelEntry {
    /// Name by which runs select the model. Unique.
    pub name: String,
    /// Provider kind, or a class path of an older configuration.
    pub use_path: String,
    /// The model's name at its provider.
    pub model: String,
    /// Name for display.
    pub display_name: Option<String>,
    /// Description for display.
    pub description: Option<String>,
    /// `true` if the model supports thinking.
    pub supports_thinking: bool,
    /// `true` if the model supports `reasoning_effort`.
    pub supports_reasoning_effort: bool,
    /// `true` if the model accepts images.
    pub supports_vision: bool,
    /// Settings that override the others while thinking is on.
    pub when_thinking_enabled: Option<Map<String, Value>>,
    /// Settings that override the others while thinking is off.
    pub when_thinking_disabled: Option<Map<String, Value>>,
    /// Short form of `when_thinking_enabled.thinking`.
    pub thinking: Option<Map<String, Value>>,
    /// Maximum number of tokens of a call, request and answer together.
    pub context_window: Option<u64>,
    /// Seconds without a chunk after which a stream has timed out.
    pub stream_chunk_timeout: Option<f64>,
    /// Maximum number of retries per call. If absent, the global setting applies.
    pub max_retries: Option<u32>,
    /// Maximum number of concurrent calls. Further calls wait. Absent or 0 means no limit.
    pub max_concurrent_calls: Option<usize>,
    /// Maximum number of bytes of one answer's text, reasoning and arguments together. A longer
    /// answer is truncated. Absent means 2 MiB, 0 means no limit.
    pub max_answer_bytes: Option<usize>,
    /// Prices of its tokens.
    pub pricing: Option<Pricing>,
    /// Entries that are called, in order, after this one and all its retries have failed.
    pub fallback_models: Vec<String>,
    /// API key of the provider. Takes precedence over an `api_key` in `extra`.
    pub api_key: Option<SecretString>,
    /// All other keys, for the provider.
    pub extra: Map<String, Value>,
    /// Reason why the entry cannot work, if it is already known. Building the model returns it as
    /// the error.
    pub fault: Option<String>,
}

impl fmt::Debug for ModelEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelEntry")
            .field("name", &self.name)
            .field("use_path", &self.use_path)
            .field("model", &self.model)
            .field("extra", &self.extra.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Error: thinking was requested, and the entry has settings for it, but does not declare that the
/// model supports it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "thinking is on, but the entry does not support it: set `supports_thinking: true` or remove its thinking settings"
)]
pub struct ThinkingUnsupported;

impl ModelEntry {
    /// Creates an entry with only the three required keys.
    pub fn new(
        name: impl Into<String>,
        use_path: impl Into<String>,
        model: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            use_path: use_path.into(),
            model: model.into(),
            ..Self::default()
        }
    }

    /// Returns the provider settings of one call: the entry's keys, the caller's overrides, and the
    /// settings for thinking on or off.
    pub fn settings_for(
        &self,
        request: &ModelRequest,
    ) -> Result<Map<String, Value>, ThinkingUnsupported> {
        let mut settings = self.extra.clone();
        settings.extend(request.overrides.clone());
        if let Some(effort) = &request.reasoning_effort {
            settings.insert("reasoning_effort".to_owned(), json!(effort));
        }
        let when_on = self.settings_when_thinking();
        if request.thinking {
            if !when_on.is_empty() && !self.supports_thinking {
                return Err(ThinkingUnsupported);
            }
            settings.extend(when_on);
        } else {
            self.turn_thinking_off(&mut settings, when_on);
        }
        if !self.supports_reasoning_effort {
            settings.shift_remove("reasoning_effort");
        }
        Ok(settings)
    }

    fn settings_when_thinking(&self) -> Map<String, Value> {
        let mut when_on = self.when_thinking_enabled.clone().unwrap_or_default();
        if let Some(thinking) = &self.thinking {
            let key = when_on.entry("thinking").or_insert_with(|| json!({}));
            deep_merge(key, &Value::Object(thinking.clone()));
        }
        when_on
    }

    /// Turns thinking off with the counterpart of the setting that turns it on.
    fn turn_thinking_off(&self, settings: &mut Map<String, Value>, when_on: Map<String, Value>) {
        if let Some(when_off) = &self.when_thinking_disabled {
            settings.extend(when_off.clone());
            return;
        }
        let when_on = Value::Object(when_on);
        let is_on = |pointer: &str| {
            when_on
                .pointer(pointer)
                .is_some_and(|value| !value.is_null())
        };
        let off = if is_on("/extra_body/thinking/type") {
            json!({"extra_body": {"thinking": {"type": "disabled"}}, "reasoning_effort": "minimal"})
        } else if is_on("/extra_body/chat_template_kwargs/thinking")
            || is_on("/extra_body/chat_template_kwargs/enable_thinking")
        {
            let switches = ["thinking", "enable_thinking"]
                .into_iter()
                .filter(|key| is_on(&format!("/extra_body/chat_template_kwargs/{key}")));
            let switches: Map<_, _> = switches.map(|key| (key.to_owned(), json!(false))).collect();
            json!({"extra_body": {"chat_template_kwargs": switches}})
        } else if is_on("/extra_body/enable_thinking") {
            json!({"extra_body": {"enable_thinking": false}})
        } else if is_on("/extra_body/reasoning/enabled") {
            json!({"extra_body": {"reasoning": {"enabled": false}}})
        } else if is_on("/thinking/type") {
            json!({"thinking": {"type": "disabled"}})
        } else {
            return;
        };
        for (key, value) in off.as_object().into_iter().flatten() {
            deep_merge(settings.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Merges `over` into `base`: objects recursively, other values are replaced.
fn deep_merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                deep_merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => base.clone_from(over),
    }
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
