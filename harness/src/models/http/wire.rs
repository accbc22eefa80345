//! What sets one provider's API apart: where a call goes, what it says, and how its answer is read.

use std::fmt;

use reqwest::Url;
use serde_json::{Map, Value};

use super::credentials::Credential;
use super::decoder::AnswerReader;
use super::endpoint::Endpoint;
use crate::models::ModelRequest;

/// One call, ready to be posted.
#[derive(Debug)]
pub(in crate::models) struct Call {
    /// Where to.
    pub(in crate::models) url: Url,
    /// Headers beside the entry's own. Their values are taken for secrets.
    pub(in crate::models) headers: Vec<(&'static str, String)>,
    /// The body.
    pub(in crate::models) body: Value,
}

/// A provider's API. Pure: what waits and fails is [`super::HttpChatModel`].
pub(in crate::models) trait Wire: fmt::Debug + Send + Sync + 'static {
    /// Reads the answers.
    type Reader: AnswerReader;

    /// The call that asks `request`. `settings` are the entry's effective ones.
    fn call(
        &self,
        request: &ModelRequest,
        settings: &Map<String, Value>,
        endpoint: &Endpoint,
        key: Option<&Credential>,
    ) -> Call;

    /// A reader of the answer that becomes the message `message_id`.
    fn reader(&self, message_id: &str) -> Self::Reader;
}

/// The header that most providers take their key in.
pub(in crate::models) fn bearer(key: &Credential) -> (&'static str, String) {
    ("authorization", format!("Bearer {}", key.text()))
}
