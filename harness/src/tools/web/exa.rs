//! Adapter for Exa: semantic search and page contents.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::failure::failed;
use super::ports::{Hit, Page, PageFinder, PageReader, Query, items, text_of};
use super::remote::Remote;
use crate::tools::ToolError;

/// Default base URL.
pub(super) const BASE: &str = "https://api.exa.ai";
/// Maximum length of a page's text, in characters.
const MAX_TEXT_CHARS: usize = 4_096;

/// Client of Exa's API.
#[derive(Debug)]
pub(super) struct Exa {
    pub(super) remote: Remote,
    pub(super) max_results: usize,
    /// `auto`, `neural` or `keyword`.
    pub(super) kind: String,
    /// Maximum length of an extract, in characters.
    pub(super) max_chars: usize,
}

#[async_trait]
impl PageFinder for Exa {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError> {
        let contents = json!({ "highlights": { "maxCharacters": self.max_chars } });
        let body = json!({ "query": query.text, "type": self.kind, "numResults": self.max_results, "contents": contents });
        let answer = self
            .remote
            .json(self.remote.post("/search").json(&body))
            .await?;
        let hits = items(&answer["results"]).filter_map(|item| {
            let extracts = item["highlights"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            let text = extracts.collect::<Vec<_>>().join("\n");
            Some(Hit {
                text,
                ..Hit::read(item, "url", "")?
            })
        });
        Ok(hits.take(self.max_results).collect())
    }
}

#[async_trait]
impl PageReader for Exa {
    async fn read(&self, url: &str) -> Result<Page, ToolError> {
        let body = json!({ "urls": [url], "text": { "maxCharacters": MAX_TEXT_CHARS } });
        let answer = self
            .remote
            .json(self.remote.post("/contents").json(&body))
            .await?;
        let page = items(&answer["results"])
            .next()
            .ok_or_else(|| failed("Exa found no text on this page"))?;
        Ok(Page {
            title: Some(text_of(page, "title")),
            text: text_of(page, "text"),
        })
    }
}
