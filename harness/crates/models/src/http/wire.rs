//! Differences between the providers' APIs: address, request body and reading of answers.

use std::fmt;

use reqwest::Url;
use serde_json::{Map, Value};

use super::credentials::Credential;
use super::decoder::AnswerReader;
use super::endpoint::Endpoint;
use super::request_body::RequestBody;
use crate::ModelRequest;

/// Request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Call {
    /// Address.
    pub(crate) url: Url,
    /// Headers in addition to the entry's. Their values are treated as secrets.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// JSON body.
    pub(crate) body: RequestBody,
}

/// API of a provider. Pure: [`super::HttpChatModel`] does the input and output.
pub(crate) trait Wire: fmt::Debug + Send + Sync + 'static {
    /// Reader of the answers.
    type Reader: AnswerReader;

    /// Builds the request. `settings` are the effective settings of the entry.
    fn call(
        &self,
        request: &ModelRequest,
        settings: &Map<String, Value>,
        endpoint: &Endpoint,
        key: Option<&Credential>,
    ) -> Call;

    /// Creates a reader for the answer that becomes the message `message_id`.
    fn reader(&self, message_id: &str) -> Self::Reader;
}

/// Returns the authorization header that most providers use.
pub(crate) fn bearer(key: &Credential) -> (&'static str, String) {
    ("authorization", format!("Bearer {}", key.text()))
}
