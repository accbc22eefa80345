//! SearXNG: a search engine of one's own.

use async_trait::async_trait;

use super::Remote;
use super::ports::{Hit, PageFinder, Query, items};
use crate::tools::ToolError;

/// Where it is if nobody says.
pub(super) const BASE: &str = "http://localhost:8088";

/// A SearXNG server.
#[derive(Debug)]
pub(super) struct SearXng {
    pub(super) remote: Remote,
    pub(super) most: usize,
    pub(super) language: String,
}

#[async_trait]
impl PageFinder for SearXng {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError> {
        let most = self.most.to_string();
        let asked = [
            ("q", &*query.text),
            ("format", "json"),
            ("language", &self.language),
            ("pageno", "1"),
            ("limit", &most),
        ];
        let answer = self
            .remote
            .json(self.remote.get("/search").query(&asked))
            .await?;
        Ok(items(&answer["results"])
            .filter_map(|item| Hit::read(item, "url", "content"))
            .take(self.most)
            .collect())
    }
}
