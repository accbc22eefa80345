//! Ollama's own API: the request and the reader of its answers, both pure.

mod decode;
mod request;

use serde_json::{Map, Value};

use self::decode::Reader;
use self::request::body;
use super::http::{Call, Credential, Endpoint, Site, Wire, bearer};
use super::{ModelEntry, ModelRequest};

/// The word in `model_provider`.
const PROVIDER: &str = "ollama";

const SITE: Site = Site {
    base_url: Some("http://localhost:11434"),
    open: true,
    key_names: &["api_key"],
    key_variable: "OLLAMA_API_KEY",
};

/// Ollama's chat, as one entry uses it.
#[derive(Debug)]
pub(in crate::models) struct Chat {
    model: String,
    thinks: bool,
}

impl Chat {
    /// The wire of `entry`, and the way to its server.
    pub(in crate::models) fn of(entry: &ModelEntry) -> Result<(Self, Endpoint), String> {
        Ok((
            Self {
                model: entry.model.clone(),
                thinks: entry.supports_thinking,
            },
            Endpoint::read(entry, SITE)?,
        ))
    }

    /// Whether the entry's address is the side of the server that speaks chat completions.
    pub(in crate::models) fn is_compatible_side(entry: &ModelEntry) -> bool {
        let address = ["base_url", "api_base"]
            .iter()
            .find_map(|key| entry.extra.get(*key)?.as_str());
        address.is_some_and(|address| address.trim().trim_end_matches('/').ends_with("/v1"))
    }
}

impl Wire for Chat {
    type Reader = Reader;

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
            body: body(&self.model, settings, request, self.thinks),
        }
    }

    fn reader(&self, message_id: &str) -> Reader {
        Reader::new(message_id, &self.model)
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
