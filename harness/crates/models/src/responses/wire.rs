//! Responses API: the wire of one entry.

use std::sync::Arc;

use reqwest::Url;
use serde_json::{Map, Value};

use super::decode::ResponsesReader;
use super::flavor::Flavor;
use super::request::body;
use crate::http::{Call, Credential, Endpoint, ModelOrigin, ProviderDefaults, Wire, bearer};
use crate::{ModelEntry, ModelRequest};

const CODEX: ProviderDefaults = ProviderDefaults {
    base_url: Some("https://chatgpt.com/backend-api/codex"),
    allows_anonymous: false,
    key_names: &["api_key", "openai_api_key"],
    key_variable: "CODEX_ACCESS_TOKEN",
};
/// Server for signed-in users, and the one for API keys that `codex login` stored.
const SIGNED_IN_HOST: &str = "chatgpt.com";
const OPEN_API: &str = "https://api.openai.com/v1/responses";

/// Responses API for one entry.
#[derive(Debug)]
pub(crate) struct Responses {
    origin: Arc<ModelOrigin>,
    flavor: Flavor,
    /// `true` if the model supports reasoning: other models reject the parameter.
    reasons: bool,
    /// Account of the key, if the entry configures it.
    account: Option<String>,
    /// Address for calls with an API key from a credentials file, if it differs.
    stored_key_url: Option<Url>,
}

impl Responses {
    /// Creates the wire of `entry` and its endpoint. `defaults` apply unless the entry overrides
    /// them.
    pub(crate) fn of(
        entry: &ModelEntry,
        defaults: ProviderDefaults,
    ) -> Result<(Self, Endpoint), String> {
        Self::read(entry, defaults, Flavor::OpenAi)
    }

    /// Creates the wire and endpoint of Codex.
    pub(crate) fn of_codex(entry: &ModelEntry) -> Result<(Self, Endpoint), String> {
        Self::read(entry, CODEX, Flavor::Codex)
    }

    fn read(
        entry: &ModelEntry,
        defaults: ProviderDefaults,
        flavor: Flavor,
    ) -> Result<(Self, Endpoint), String> {
        let reasons =
            flavor == Flavor::Codex || entry.supports_thinking || entry.supports_reasoning_effort;
        let account = entry
            .extra
            .get("account_id")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let endpoint = Endpoint::read(entry, defaults)?;
        let origin = Arc::new(ModelOrigin::new(
            flavor.provider(),
            endpoint.server(),
            &entry.model,
        ));
        let stored_key_endpoint = (flavor == Flavor::Codex && endpoint.is_at(SIGNED_IN_HOST))
            .then(|| Url::parse(OPEN_API));
        let stored_key_url = stored_key_endpoint
            .transpose()
            .map_err(|error| error.to_string())?;
        Ok((
            Self {
                origin,
                flavor,
                reasons,
                account,
                stored_key_url,
            },
            endpoint,
        ))
    }
}

impl Wire for Responses {
    type Reader = ResponsesReader;

    fn call(
        &self,
        request: &ModelRequest,
        settings: &Map<String, Value>,
        endpoint: &Endpoint,
        key: Option<&Credential>,
    ) -> Call {
        let mut headers: Vec<_> = key.map(bearer).into_iter().collect();
        if self.flavor == Flavor::Codex {
            let account = key
                .and_then(|key| key.account.as_ref())
                .or(self.account.as_ref());
            headers.extend(account.map(|account| ("chatgpt-account-id", account.clone())));
            headers.push(("originator", "deerflow".to_owned()));
        }
        let stored_key_endpoint = self
            .stored_key_url
            .as_ref()
            .filter(|_| key.is_some_and(|key| key.is_stored_key));
        let url = stored_key_endpoint
            .cloned()
            .unwrap_or_else(|| endpoint.url(&["responses"]));
        Call {
            url,
            headers,
            body: body(&self.origin, settings, request, self.flavor, self.reasons).into(),
        }
    }

    fn reader(&self, message_id: &str) -> ResponsesReader {
        ResponsesReader::new(message_id, Arc::clone(&self.origin))
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
