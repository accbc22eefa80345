//! Google's Gemini API: the request and the reader of its answers, both pure.
//!
//! Parts of an answer contain signatures that the API requires back on the same parts. The answer
//! parts of [`super::http`] store them.

mod contents;
mod decode;
mod event;
mod request;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::decode::Reader;
use self::request::body;
use super::http::{Call, Credential, Endpoint, ModelOrigin, ProviderDefaults, Wire};
use super::{ModelEntry, ModelRequest};

/// Value of `model_provider`.
const PROVIDER: &str = "google_genai";
/// Key of a part's thought signature.
const SIGNATURE: &str = "thoughtSignature";

const DEFAULTS: ProviderDefaults = ProviderDefaults {
    base_url: Some("https://generativelanguage.googleapis.com/v1beta"),
    allows_anonymous: false,
    key_names: &["api_key", "gemini_api_key", "google_api_key"],
    key_variable: "GEMINI_API_KEY",
};

/// Gemini API for one entry.
#[derive(Debug)]
pub(crate) struct GenerateContent {
    origin: Arc<ModelOrigin>,
    thinks: bool,
}

impl GenerateContent {
    /// Creates the wire of `entry` and its endpoint.
    pub(crate) fn of(entry: &ModelEntry) -> Result<(Self, Endpoint), String> {
        let endpoint = Endpoint::read(entry, DEFAULTS)?;
        let origin = Arc::new(ModelOrigin::new(
            PROVIDER,
            endpoint.server(),
            entry.model.trim_start_matches("models/"),
        ));
        Ok((
            Self {
                origin,
                thinks: entry.supports_thinking,
            },
            endpoint,
        ))
    }
}

impl Wire for GenerateContent {
    type Reader = Reader;

    fn call(
        &self,
        request: &ModelRequest,
        settings: &Map<String, Value>,
        endpoint: &Endpoint,
        key: Option<&Credential>,
    ) -> Call {
        let mut url = endpoint.url(&[
            "models",
            &format!("{}:streamGenerateContent", self.origin.model()),
        ]);
        url.query_pairs_mut().append_pair("alt", "sse");
        Call {
            url,
            headers: key
                .map(|key| ("x-goog-api-key", key.text().to_owned()))
                .into_iter()
                .collect(),
            body: body(&self.origin, settings, request, self.thinks),
        }
    }

    fn reader(&self, message_id: &str) -> Reader {
        Reader::new(message_id, Arc::clone(&self.origin))
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
