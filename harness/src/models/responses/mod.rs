//! OpenAI's responses API, and Codex behind it: the request and the reader of its answers, both pure.
//!
//! Nothing is stored at the provider: what the model reasoned comes encrypted and goes back in its place.

mod decode;
mod event;
mod input;
mod request;

use std::sync::Arc;

use reqwest::Url;
use serde_json::{Map, Value};

use self::decode::Reader;
use self::request::body;
use super::http::{Call, Credential, Endpoint, Maker, Site, Wire, bearer};
use super::{ModelEntry, ModelRequest};

const CODEX: Site = Site {
    base_url: Some("https://chatgpt.com/backend-api/codex"),
    open: false,
    key_names: &["api_key", "openai_api_key"],
    key_variable: "CODEX_ACCESS_TOKEN",
};
/// The server for people who are signed in, and the one for those who had `codex login` keep a key of the open API.
const SIGNED_IN_HOST: &str = "chatgpt.com";
const OPEN_API: &str = "https://api.openai.com/v1/responses";

/// Who speaks the responses API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flavor {
    /// OpenAI and servers compatible with it.
    OpenAi,
    /// Codex, which people sign in to: it takes instructions apart, streams always and chooses the answer's length itself.
    Codex,
}

impl Flavor {
    /// The word in `model_provider`.
    fn provider(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Codex => "codex",
        }
    }
}

/// The responses API, as one entry uses it.
#[derive(Debug)]
pub(in crate::models) struct Responses {
    maker: Arc<Maker>,
    flavor: Flavor,
    /// Whether the model can reason: others refuse to be asked for it.
    reasons: bool,
    /// The account that a key belongs to, where the entry says it.
    account: Option<String>,
    /// Where calls go with a key that a sign-in file holds, if not where others go.
    for_filed_keys: Option<Url>,
}

impl Responses {
    /// The wire of `entry`, and the way to its server, which is one of `site` unless the entry says otherwise.
    pub(in crate::models) fn of(
        entry: &ModelEntry,
        site: Site,
    ) -> Result<(Self, Endpoint), String> {
        Self::read(entry, site, Flavor::OpenAi)
    }

    /// The same for Codex.
    pub(in crate::models) fn of_codex(entry: &ModelEntry) -> Result<(Self, Endpoint), String> {
        Self::read(entry, CODEX, Flavor::Codex)
    }

    fn read(entry: &ModelEntry, site: Site, flavor: Flavor) -> Result<(Self, Endpoint), String> {
        let reasons =
            flavor == Flavor::Codex || entry.supports_thinking || entry.supports_reasoning_effort;
        let account = entry
            .extra
            .get("account_id")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let endpoint = Endpoint::read(entry, site)?;
        let maker = Arc::new(Maker::new(
            flavor.provider(),
            endpoint.server(),
            &entry.model,
        ));
        let elsewhere = (flavor == Flavor::Codex && endpoint.is_at(SIGNED_IN_HOST))
            .then(|| Url::parse(OPEN_API));
        let for_filed_keys = elsewhere.transpose().map_err(|error| error.to_string())?;
        Ok((
            Self {
                maker,
                flavor,
                reasons,
                account,
                for_filed_keys,
            },
            endpoint,
        ))
    }
}

impl Wire for Responses {
    type Reader = Reader;

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
        let elsewhere = self
            .for_filed_keys
            .as_ref()
            .filter(|_| key.is_some_and(|key| key.is_filed_key));
        let url = elsewhere
            .cloned()
            .unwrap_or_else(|| endpoint.url(&["responses"]));
        Call {
            url,
            headers,
            body: body(&self.maker, settings, request, self.flavor, self.reasons),
        }
    }

    fn reader(&self, message_id: &str) -> Reader {
        Reader::new(message_id, Arc::clone(&self.maker))
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
