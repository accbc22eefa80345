//! Firecrawl, and fastCRW, which speaks as Firecrawl does.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::ports::{Hit, Page, PageFinder, PageReader, Query, items, text_of};
use super::{Remote, failed};
use crate::tools::ToolError;

/// Firecrawl's server.
pub(super) const BASE: &str = "https://api.firecrawl.dev";
/// fastCRW's server.
pub(super) const FASTCRW_BASE: &str = "https://fastcrw.com/api";

/// Firecrawl's API.
#[derive(Debug)]
pub(super) struct Firecrawl {
    pub(super) remote: Remote,
    pub(super) most: usize,
    /// What its paths begin with.
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
        let most = query.most.map_or(self.most, |most| most.min(self.most));
        let answer = self
            .ask("search", &json!({ "query": query.text, "limit": most }))
            .await?;
        // Its first version gives the list itself.
        let found = if answer["data"].is_array() {
            &answer["data"]
        } else {
            &answer["data"]["web"]
        };
        Ok(items(found)
            .filter_map(|item| Hit::read(item, "url", "description"))
            .take(most)
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
