//! Google's Gemini API: the request and the reader of its answers, both pure.
//!
//! Parts of an answer carry signatures that the API wants back on the same parts: [`super::http`]'s parts keep them.

mod contents;
mod decode;
mod event;
mod request;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::decode::Reader;
use self::request::body;
use super::http::{Call, Credential, Endpoint, Maker, Site, Wire};
use super::{ModelEntry, ModelRequest};

/// The word in `model_provider`.
const PROVIDER: &str = "google_genai";
/// Where a part carries the signature of the thoughts behind it.
const SIGNATURE: &str = "thoughtSignature";

const SITE: Site = Site {
    base_url: Some("https://generativelanguage.googleapis.com/v1beta"),
    open: false,
    key_names: &["api_key", "gemini_api_key", "google_api_key"],
    key_variable: "GEMINI_API_KEY",
};

/// The Gemini API, as one entry uses it.
#[derive(Debug)]
pub(in crate::models) struct GenerateContent {
    maker: Arc<Maker>,
    thinks: bool,
}

impl GenerateContent {
    /// The wire of `entry`, and the way to its server.
    pub(in crate::models) fn of(entry: &ModelEntry) -> Result<(Self, Endpoint), String> {
        let endpoint = Endpoint::read(entry, SITE)?;
        let maker = Arc::new(Maker::new(
            PROVIDER,
            endpoint.server(),
            entry.model.trim_start_matches("models/"),
        ));
        Ok((
            Self {
                maker,
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
            &format!("{}:streamGenerateContent", self.maker.model()),
        ]);
        url.query_pairs_mut().append_pair("alt", "sse");
        Call {
            url,
            headers: key
                .map(|key| ("x-goog-api-key", key.text().to_owned()))
                .into_iter()
                .collect(),
            body: body(&self.maker, settings, request, self.thinks),
        }
    }

    fn reader(&self, message_id: &str) -> Reader {
        Reader::new(message_id, Arc::clone(&self.maker))
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
