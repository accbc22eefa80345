//! Adapter for SearXNG, a self-hosted search engine.

use async_trait::async_trait;

use super::ports::{Hit, PageFinder, Query, items};
use super::remote::Remote;
use crate::tools::ToolError;

/// Default base URL.
pub(super) const BASE: &str = "http://localhost:8088";

/// Client of a SearXNG server.
#[derive(Debug)]
pub(super) struct SearXng {
    pub(super) remote: Remote,
    pub(super) max_results: usize,
    pub(super) language: String,
}

#[async_trait]
impl PageFinder for SearXng {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError> {
        let max_results = self.max_results.to_string();
        let parameters = [
            ("q", &*query.text),
            ("format", "json"),
            ("language", &self.language),
            ("pageno", "1"),
            ("limit", &max_results),
        ];
        let answer = self
            .remote
            .json(self.remote.get("/search").query(&parameters))
            .await?;
        Ok(items(&answer["results"])
            .filter_map(|item| Hit::read(item, "url", "content"))
            .take(self.max_results)
            .collect())
    }
}
