//! Anthropic's messages API: the request and the reader of its answers, both pure.
//!
//! Thoughts come with signatures and are wanted back with them, in their place: [`super::http`]'s parts keep the order.

mod decode;
mod event;
mod messages;
mod request;

use std::sync::Arc;

use reqwest::Url;
use serde_json::{Map, Value, json};

use self::decode::Reader;
use self::request::{Caching, body};
use super::http::{Call, Credential, Endpoint, Maker, Site, Wire, bearer};
use super::{ModelEntry, ModelRequest};

/// The word in `model_provider`.
const PROVIDER: &str = "anthropic";
/// What signs a thought.
const SIGNATURE: &str = "signature";
const API_VERSION: &str = "2023-06-01";
/// What a call that signs in with a person's token must say.
const SIGN_IN_BETA: &str = "oauth-2025-04-20";
const SIGN_IN_TOKEN: &str = "sk-ant-oat";

const SITE: Site = Site {
    base_url: Some("https://api.anthropic.com"),
    open: false,
    key_names: &["api_key", "anthropic_api_key"],
    key_variable: "ANTHROPIC_API_KEY",
};

/// The messages API, as one entry uses it.
#[derive(Debug)]
pub(in crate::models) struct Messages {
    maker: Arc<Maker>,
    betas: Vec<String>,
    caching: Option<Caching>,
    /// A first system block that only calls with a sign-in token carry.
    billing: Option<String>,
}

impl Messages {
    /// The wire of `entry`, and the way to its server. `caches` is what the kind does when the entry does not say.
    pub(in crate::models) fn of(
        entry: &ModelEntry,
        caches: bool,
    ) -> Result<(Self, Endpoint), String> {
        let endpoint = Endpoint::read(entry, SITE)?;
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
        let maker = Arc::new(Maker::new(PROVIDER, endpoint.server(), &entry.model));
        Ok((
            Self {
                maker,
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
    type Reader = Reader;

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
        // Calls on a person's plan are not billed by the token: their breakpoints are refused.
        let caching = self.caching.filter(|_| !signed_in);
        let mut body = body(&self.maker, settings, request, caching);
        if signed_in && let Some(billing) = &self.billing {
            put_first(&mut body, json!({"type": "text", "text": billing}));
        }
        Call {
            url: Self::url(endpoint),
            headers,
            body,
        }
    }

    fn reader(&self, message_id: &str) -> Reader {
        Reader::new(message_id, Arc::clone(&self.maker))
    }
}

/// Puts a block in front of the system text.
fn put_first(body: &mut Value, block: Value) {
    match body.get_mut("system").and_then(Value::as_array_mut) {
        Some(system) => system.insert(0, block),
        None => body["system"] = json!([block]),
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
