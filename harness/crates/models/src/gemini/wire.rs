//! Gemini API: the wire of one entry.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::decode::GenerateContentReader;
use super::request::body;
use crate::http::{Call, Credential, Endpoint, ModelOrigin, ProviderDefaults, Wire};
use crate::{ModelEntry, ModelRequest};

/// Value of `model_provider`.
const PROVIDER: &str = "google_genai";

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
    type Reader = GenerateContentReader;

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
            body: body(&self.origin, settings, request, self.thinks).into(),
        }
    }

    fn reader(&self, message_id: &str) -> GenerateContentReader {
        GenerateContentReader::new(message_id, Arc::clone(&self.origin))
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
