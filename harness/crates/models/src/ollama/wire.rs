//! Ollama's chat API: the wire of one entry.

use serde_json::{Map, Value};

use super::decode::ChatReader;
use super::request::body;
use crate::http::{Call, Credential, Endpoint, ProviderDefaults, Wire, bearer};
use crate::{ModelEntry, ModelRequest};

const DEFAULTS: ProviderDefaults = ProviderDefaults {
    base_url: Some("http://localhost:11434"),
    allows_anonymous: true,
    key_names: &["api_key"],
    key_variable: "OLLAMA_API_KEY",
};

/// Ollama's chat API for one entry.
#[derive(Debug)]
pub(crate) struct Chat {
    model: String,
    thinks: bool,
}

impl Chat {
    /// Creates the wire of `entry` and its endpoint.
    pub(crate) fn of(entry: &ModelEntry) -> Result<(Self, Endpoint), String> {
        Ok((
            Self {
                model: entry.model.clone(),
                thinks: entry.supports_thinking,
            },
            Endpoint::read(entry, DEFAULTS)?,
        ))
    }

    /// Reports whether the entry's address is Ollama's OpenAI-compatible API.
    pub(crate) fn is_compatible_side(entry: &ModelEntry) -> bool {
        let address = ["base_url", "api_base"]
            .iter()
            .find_map(|key| entry.extra.get(*key)?.as_str());
        address.is_some_and(|address| address.trim().trim_end_matches('/').ends_with("/v1"))
    }
}

impl Wire for Chat {
    type Reader = ChatReader;

    fn call(
        &self,
        request: &ModelRequest,
        settings: &Map<String, Value>,
        endpoint: &Endpoint,
        key: Option<&Credential>,
    ) -> Call {
        Call {
            url: endpoint.url(&["api", "chat"]),
            headers: key.map(bearer).into_iter().collect(),
            body: body(&self.model, settings, request, self.thinks).into(),
        }
    }

    fn reader(&self, message_id: &str) -> ChatReader {
        ChatReader::new(message_id, &self.model)
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
