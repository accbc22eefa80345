//! Jina's reader: it renders a page, and its main text is found here.

use async_trait::async_trait;
use serde_json::json;

use super::charset::decoded;
use super::ports::{Page, PageReader};
use super::{Remote, failed, readable};
use crate::tools::ToolError;

/// Its server.
pub(super) const BASE: &str = "https://r.jina.ai";

/// Jina's API.
#[derive(Debug)]
pub(super) struct Jina {
    pub(super) remote: Remote,
    /// How long it may render, in seconds.
    pub(super) seconds: u64,
}

#[async_trait]
impl PageReader for Jina {
    async fn read(&self, url: &str) -> Result<Page, ToolError> {
        let request = self
            .remote
            .post("/")
            .header("X-Return-Format", "html")
            .header("X-Timeout", self.seconds)
            .json(&json!({ "url": url }));
        let answer = self.remote.ask(request).await?;
        let html = decoded(&answer.body, &answer.content_type);
        if html.trim().is_empty() {
            return Err(failed("Jina found nothing on this page"));
        }
        readable::read(html, url.to_owned()).await
    }
}
