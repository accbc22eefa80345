//! Adapter for GroundRoute, an API in front of several search engines.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::failure::failed;
use super::ports::{Hit, Page, PageFinder, PageReader, Query, items, text_of};
use super::remote::Remote;
use crate::tools::ToolError;

/// Default base URL.
pub(super) const BASE: &str = "https://api.groundroute.ai";
/// Maximum number of results per search.
pub(super) const MAX_RESULTS: usize = 50;

/// Client of GroundRoute's API.
#[derive(Debug)]
pub(super) struct GroundRoute {
    pub(super) remote: Remote,
    pub(super) max_results: usize,
}

impl GroundRoute {
    async fn ask(&self, body: &Value) -> Result<Value, ToolError> {
        self.remote
            .json(self.remote.post("/v1/search").json(body))
            .await
    }
}

/// Returns the text of a result, which is in one of two fields.
fn text(item: &Value) -> String {
    ["snippet", "content"]
        .iter()
        .map(|key| text_of(item, key))
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

#[async_trait]
impl PageFinder for GroundRoute {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError> {
        let max_results = query.max_results.map_or(self.max_results, |max_results| {
            max_results.clamp(1, MAX_RESULTS)
        });
        let answer = self
            .ask(&json!({ "query": query.text, "max_results": max_results }))
            .await?;
        let hits = items(&answer["results"]).filter_map(|item| {
            let mut hit = Hit {
                text: text(item),
                ..Hit::read(item, "url", "")?
            };
            hit.more.extend(
                item.get("source_engine")
                    .map(|engine| ("source_engine".to_owned(), engine.clone())),
            );
            Some(hit)
        });
        Ok(hits.take(max_results).collect())
    }
}

#[async_trait]
impl PageReader for GroundRoute {
    async fn read(&self, url: &str) -> Result<Page, ToolError> {
        let answer = self
            .ask(&json!({ "query": url, "mode": "page", "max_results": 1 }))
            .await?;
        let page = items(&answer["results"])
            .next()
            .ok_or_else(|| failed("GroundRoute found no text on this page"))?;
        let whole = ["content", "text", "markdown", "snippet"]
            .iter()
            .map(|key| text_of(page, key))
            .find(|text| !text.is_empty());
        Ok(Page {
            title: Some(text_of(page, "title")),
            text: whole.unwrap_or_default(),
        })
    }
}
