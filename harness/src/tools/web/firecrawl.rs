//! Adapter for Firecrawl, and for fastCRW, which has the same API.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::failure::failed;
use super::ports::{Hit, Page, PageFinder, PageReader, Query, items, text_of};
use super::remote::Remote;
use crate::tools::ToolError;

/// Default base URL of Firecrawl.
pub(super) const BASE: &str = "https://api.firecrawl.dev";
/// Default base URL of fastCRW.
pub(super) const FASTCRW_BASE: &str = "https://fastcrw.com/api";

/// Client of Firecrawl's API.
#[derive(Debug)]
pub(super) struct Firecrawl {
    pub(super) remote: Remote,
    pub(super) max_results: usize,
    /// API version, the first segment of each path.
    pub(super) version: &'static str,
}

impl Firecrawl {
    async fn ask(&self, what: &str, body: &Value) -> Result<Value, ToolError> {
        let answer = self
            .remote
            .json(
                self.remote
                    .post(&format!("/{}/{what}", self.version))
                    .json(body),
            )
            .await?;
        if answer["success"] == false {
            let why = text_of(&answer, "error");
            let why = if why.is_empty() {
                "it did not succeed"
            } else {
                &why
            };
            return Err(failed(format_args!("{}: {why}", self.remote.name)));
        }
        Ok(answer)
    }
}

#[async_trait]
impl PageFinder for Firecrawl {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError> {
        let max_results = query.max_results.map_or(self.max_results, |max_results| {
            max_results.min(self.max_results)
        });
        let answer = self
            .ask(
                "search",
                &json!({ "query": query.text, "limit": max_results }),
            )
            .await?;
        // Version 1 returns the list without a wrapper object.
        let found = if answer["data"].is_array() {
            &answer["data"]
        } else {
            &answer["data"]["web"]
        };
        Ok(items(found)
            .filter_map(|item| Hit::read(item, "url", "description"))
            .take(max_results)
            .collect())
    }
}

#[async_trait]
impl PageReader for Firecrawl {
    async fn read(&self, url: &str) -> Result<Page, ToolError> {
        let answer = self
            .ask("scrape", &json!({ "url": url, "formats": ["markdown"] }))
            .await?;
        let page = &answer["data"];
        let text = text_of(page, "markdown");
        if text.is_empty() {
            return Err(failed(format_args!(
                "{} found no text on this page",
                self.remote.name
            )));
        }
        Ok(Page {
            title: Some(text_of(&page["metadata"], "title")),
            text,
        })
    }
}
