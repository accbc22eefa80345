//! Messages API: the wire of one entry.

use std::sync::Arc;

use reqwest::Url;
use serde_json::{Map, Value, json};

use super::decode::MessagesReader;
use super::request::{Caching, body};
use crate::http::{Call, Credential, Endpoint, ModelOrigin, ProviderDefaults, Wire, bearer};
use crate::{ModelEntry, ModelRequest};

/// Value of `model_provider`.
const PROVIDER: &str = "anthropic";
const API_VERSION: &str = "2023-06-01";
/// Beta that a call with a user's sign-in token must declare.
const SIGN_IN_BETA: &str = "oauth-2025-04-20";
const SIGN_IN_TOKEN: &str = "sk-ant-oat";

const DEFAULTS: ProviderDefaults = ProviderDefaults {
    base_url: Some("https://api.anthropic.com"),
    allows_anonymous: false,
    key_names: &["api_key", "anthropic_api_key"],
    key_variable: "ANTHROPIC_API_KEY",
};

/// Messages API for one entry.
#[derive(Debug)]
pub(crate) struct Messages {
    origin: Arc<ModelOrigin>,
    betas: Vec<String>,
    caching: Option<Caching>,
    /// First system block that only calls with a sign-in token contain.
    billing: Option<String>,
}

impl Messages {
    /// Creates the wire of `entry` and its endpoint. `caches` is the default for prompt caching.
    pub(crate) fn of(entry: &ModelEntry, caches: bool) -> Result<(Self, Endpoint), String> {
        let endpoint = Endpoint::read(entry, DEFAULTS)?;
        let key = |key: &str| entry.extra.get(key);
        let betas = key("betas")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let caching = key("enable_prompt_caching")
            .and_then(Value::as_bool)
            .unwrap_or(caches)
            .then(|| Caching {
                messages: key("prompt_cache_size")
                    .and_then(Value::as_u64)
                    .and_then(|size| usize::try_from(size).ok())
                    .unwrap_or(3),
            });
        let billing = key("billing_header")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let origin = Arc::new(ModelOrigin::new(PROVIDER, endpoint.server(), &entry.model));
        Ok((
            Self {
                origin,
                betas,
                caching,
                billing,
            },
            endpoint,
        ))
    }

    fn url(endpoint: &Endpoint) -> Url {
        endpoint.url(&["v1", "messages"])
    }
}

impl Wire for Messages {
    type Reader = MessagesReader;

    fn call(
        &self,
        request: &ModelRequest,
        settings: &Map<String, Value>,
        endpoint: &Endpoint,
        key: Option<&Credential>,
    ) -> Call {
        let signed_in = key.is_some_and(|key| key.text().starts_with(SIGN_IN_TOKEN));
        let mut headers = vec![("anthropic-version", API_VERSION.to_owned())];
        headers.extend(key.map(|key| {
            if signed_in {
                bearer(key)
            } else {
                ("x-api-key", key.text().to_owned())
            }
        }));
        let betas: Vec<&str> = self
            .betas
            .iter()
            .map(String::as_str)
            .chain(signed_in.then_some(SIGN_IN_BETA))
            .collect();
        if !betas.is_empty() {
            headers.push(("anthropic-beta", betas.join(",")));
        }
        // Calls on a user's subscription are not billed by token, and the API rejects cache
        // breakpoints for them.
        let caching = self.caching.filter(|_| !signed_in);
        let mut body = body(&self.origin, settings, request, caching);
        if signed_in && let Some(billing) = &self.billing {
            prepend_system_block(&mut body, json!({"type": "text", "text": billing}));
        }
        Call {
            url: Self::url(endpoint),
            headers,
            body: body.into(),
        }
    }

    fn reader(&self, message_id: &str) -> MessagesReader {
        MessagesReader::new(message_id, Arc::clone(&self.origin))
    }
}

/// Inserts a block in front of the system text.
fn prepend_system_block(body: &mut Value, block: Value) {
    match body.get_mut("system").and_then(Value::as_array_mut) {
        Some(system) => system.insert(0, block),
        None => body["system"] = json!([block]),
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
