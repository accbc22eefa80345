//! Wire of chat completions.

use serde_json::{Map, Value};

use super::decode::ChatCompletionsReader;
use super::dialect::Dialect;
use super::wire;
use crate::http::{Call, Credential, Endpoint, ToolTexts, Wire, bearer};
use crate::{ModelEntry, ModelRequest};

/// Chat completions in one dialect.
#[derive(Debug)]
pub(crate) struct ChatCompletions {
    model: String,
    dialect: Dialect,
    tools: ToolTexts,
}

impl ChatCompletions {
    /// Creates the wire of `entry` and its endpoint.
    pub(crate) fn of(entry: &ModelEntry, mut dialect: Dialect) -> Result<(Self, Endpoint), String> {
        let endpoint = Endpoint::read(entry, dialect.defaults)?;
        dialect.renames_max_tokens = endpoint.is_at("api.openai.com");
        dialect.accepts_images = entry.supports_vision && !dialect.flattens_content;
        Ok((
            Self {
                model: entry.model.clone(),
                dialect,
                tools: ToolTexts::default(),
            },
            endpoint,
        ))
    }
}

impl Wire for ChatCompletions {
    type Reader = ChatCompletionsReader;

    fn call(
        &self,
        request: &ModelRequest,
        settings: &Map<String, Value>,
        endpoint: &Endpoint,
        key: Option<&Credential>,
    ) -> Call {
        Call {
            url: endpoint.url(&["chat", "completions"]),
            headers: key.map(bearer).into_iter().collect(),
            body: wire::body(&self.model, settings, request, self.dialect, &self.tools),
        }
    }

    fn reader(&self, message_id: &str) -> ChatCompletionsReader {
        ChatCompletionsReader::new(message_id, self.dialect, &self.model)
    }
}
