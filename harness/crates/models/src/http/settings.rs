//! Keys of an entry that are sent to the provider. Keys that configure this program or a client
//! library are not sent.

use serde_json::{Map, Value};

/// Keys that are never sent to any provider.
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
    "connect_timeout",
    "convert_system_message_to_human",
    "credentials",
    "credentials_path",
    "cumulative_stream_usage",
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
    "pool_timeout",
    "profile",
    "project",
    "prompt_cache_size",
    "proxy",
    "rate_limiter",
    "read_timeout",
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
    "write_timeout",
];

/// Settings of one call. A wire removes settings that it sends in another form or under another
/// name; all others are sent unchanged.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    sent: Map<String, Value>,
    extra: Vec<Map<String, Value>>,
}

impl Settings {
    /// Creates the settings from the effective settings of a call.
    pub(crate) fn of(settings: &Map<String, Value>) -> Self {
        let own = settings
            .iter()
            .filter(|(key, value)| !NOT_SENT.contains(&key.as_str()) && !value.is_null());
        let extra = ["model_kwargs", "extra_body"]
            .into_iter()
            .filter_map(|key| settings.get(key)?.as_object().cloned());
        Self {
            sent: own
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            extra: extra.collect(),
        }
    }

    /// Removes all of `keys`. Returns the value of the first that is set.
    pub(crate) fn take(&mut self, keys: &[&str]) -> Option<Value> {
        let mut first_value = None;
        for key in keys {
            first_value = first_value.or(self.sent.shift_remove(*key));
        }
        first_value
    }

    /// Returns the value of `key`.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.sent.get(key)
    }

    /// Merges the remaining settings into `body`: first the keys themselves, then `model_kwargs`,
    /// then `extra_body`.
    pub(crate) fn merge_into(self, body: &mut impl Extend<(String, Value)>) {
        body.extend(self.sent);
        body.extend(self.extra.into_iter().flatten());
    }
}
