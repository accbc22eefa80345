//! Adapter for Tavily: search and extraction.

use async_trait::async_trait;
use serde_json::json;

use super::failure::failed;
use super::ports::{Hit, Page, PageFinder, PageReader, Query, items, text_of};
use super::remote::Remote;
use crate::tools::ToolError;

/// Default base URL.
pub(super) const BASE: &str = "https://api.tavily.com";

/// Client of Tavily's API.
#[derive(Debug)]
pub(super) struct Tavily {
    pub(super) remote: Remote,
    pub(super) max_results: usize,
}

#[async_trait]
impl PageFinder for Tavily {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError> {
        let body = json!({ "query": query.text, "max_results": query.max_results.map_or(self.max_results, |max_results| max_results.min(self.max_results)) });
        let answer = self
            .remote
            .json(self.remote.post("/search").json(&body))
            .await?;
        Ok(items(&answer["results"])
            .filter_map(|item| Hit::read(item, "url", "content"))
            .take(self.max_results)
            .collect())
    }
}

#[async_trait]
impl PageReader for Tavily {
    async fn read(&self, url: &str) -> Result<Page, ToolError> {
        let answer = self
            .remote
            .json(self.remote.post("/extract").json(&json!({ "urls": [url] })))
            .await?;
        if let Some(failure) = items(&answer["failed_results"]).next() {
            let why = text_of(failure, "error");
            return Err(failed(if why.is_empty() {
                "Tavily could not read this page"
            } else {
                &why
            }));
        }
        let page = items(&answer["results"])
            .next()
            .ok_or_else(|| failed("Tavily found no text on this page"))?;
        Ok(Page {
            title: Some(text_of(page, "title")),
            text: text_of(page, "raw_content"),
        })
    }
}
