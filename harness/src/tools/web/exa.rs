//! Exa: search by meaning, and contents.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::ports::{Hit, Page, PageFinder, PageReader, Query, items, text_of};
use super::{Remote, failed};
use crate::tools::ToolError;

/// Its server.
pub(super) const BASE: &str = "https://api.exa.ai";
/// How much of a page is asked for, in characters.
const MOST_TEXT: usize = 4_096;

/// Exa's API.
#[derive(Debug)]
pub(super) struct Exa {
    pub(super) remote: Remote,
    pub(super) most: usize,
    /// `auto`, `neural` or `keyword`.
    pub(super) kind: String,
    /// The longest extract, in characters.
    pub(super) most_chars: usize,
}

#[async_trait]
impl PageFinder for Exa {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError> {
        let contents = json!({ "highlights": { "maxCharacters": self.most_chars } });
        let body = json!({ "query": query.text, "type": self.kind, "numResults": self.most, "contents": contents });
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
        Ok(hits.take(self.most).collect())
    }
}

#[async_trait]
impl PageReader for Exa {
    async fn read(&self, url: &str) -> Result<Page, ToolError> {
        let body = json!({ "urls": [url], "text": { "maxCharacters": MOST_TEXT } });
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
