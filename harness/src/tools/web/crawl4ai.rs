//! Adapter for Crawl4AI, a self-hosted browser that returns Markdown.

use async_trait::async_trait;
use serde_json::json;

use super::failure::failed;
use super::ports::{Page, PageReader, text_of};
use super::remote::Remote;
use crate::tools::ToolError;

/// Default base URL.
pub(super) const BASE: &str = "http://localhost:11235";
/// Content filters that the server supports.
pub(super) const FILTERS: &[&str] = &["fit", "raw", "bm25", "llm"];

/// Client of a Crawl4AI server.
#[derive(Debug)]
pub(super) struct Crawl4Ai {
    pub(super) remote: Remote,
    pub(super) filter: String,
}

#[async_trait]
impl PageReader for Crawl4Ai {
    async fn read(&self, url: &str) -> Result<Page, ToolError> {
        let answer = self
            .remote
            .json(
                self.remote
                    .post("/md")
                    .json(&json!({ "url": url, "f": self.filter })),
            )
            .await?;
        let text = text_of(&answer, "markdown");
        if answer["success"] == false || text.is_empty() {
            return Err(failed("Crawl4AI found no text on this page"));
        }
        Ok(Page { title: None, text })
    }
}
