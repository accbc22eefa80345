//! The keys of an entry that are sent, apart from those that steer this side or name things of the provider's own library.

use serde_json::{Map, Value};

/// Never sent, whatever the provider.
const NOT_SENT: &[&str] = &[
    "additional_headers",
    "anthropic_api_key",
    "anthropic_api_url",
    "anthropic_proxy",
    "api_base",
    "api_key",
    "api_keys",
    "auto_thinking_budget",
    "base_url",
    "betas",
    "billing_header",
    "cache",
    "callbacks",
    "client_options",
    "convert_system_message_to_human",
    "credentials",
    "credentials_path",
    "custom_get_token_ids",
    "dashscope_api_key",
    "deepseek_api_key",
    "default_headers",
    "default_query",
    "default_request_timeout",
    "disable_streaming",
    "disabled_params",
    "enable_prompt_caching",
    "extra_body",
    "fallback_models",
    "gemini_api_key",
    "google_api_key",
    "http_async_client",
    "http_client",
    "include_response_headers",
    "location",
    "max_answer_bytes",
    "max_concurrent_calls",
    "max_retries",
    "metadata",
    "model",
    "model_kwargs",
    "model_name",
    "openai_api_base",
    "openai_api_key",
    "openai_organization",
    "openai_proxy",
    "organization",
    "output_version",
    "profile",
    "project",
    "prompt_cache_size",
    "proxy",
    "rate_limiter",
    "request_timeout",
    "retries",
    "retry_max_attempts",
    "reuse_last_container",
    "stream",
    "stream_chunk_timeout",
    "stream_usage",
    "streaming",
    "tags",
    "thinking_budget_ratio",
    "tiktoken_model_name",
    "timeout",
    "transport",
    "use_previous_response_id",
    "use_responses_api",
    "verbose",
    "vertexai",
    "vllm_api_key",
];

/// The keys of one call, each of which a wire takes out and renames, or leaves to be sent as it is.
#[derive(Debug, Clone)]
pub(in crate::models) struct Settings {
    sent: Map<String, Value>,
    raw: Vec<Map<String, Value>>,
}

impl Settings {
    /// The effective settings of a call.
    pub(in crate::models) fn of(settings: &Map<String, Value>) -> Self {
        let own = settings
            .iter()
            .filter(|(key, value)| !NOT_SENT.contains(&key.as_str()) && !value.is_null());
        let raw = ["model_kwargs", "extra_body"]
            .into_iter()
            .filter_map(|key| settings.get(key)?.as_object().cloned());
        Self {
            sent: own
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            raw: raw.collect(),
        }
    }

    /// Takes all of `keys` out; the first that is there counts.
    pub(in crate::models) fn take(&mut self, keys: &[&str]) -> Option<Value> {
        let mut found = None;
        for key in keys {
            found = found.or(self.sent.shift_remove(*key));
        }
        found
    }

    /// What stands under `key`.
    pub(in crate::models) fn get(&self, key: &str) -> Option<&Value> {
        self.sent.get(key)
    }

    /// Lays what is left onto `body`: first the keys by their own names, then `model_kwargs`, then `extra_body`.
    pub(in crate::models) fn lay_onto(self, body: &mut Map<String, Value>) {
        body.extend(self.sent);
        body.extend(self.raw.into_iter().flatten());
    }
}
