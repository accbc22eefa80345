//! Adapter for Jina's reader, which renders a page; its main text is extracted here.

use async_trait::async_trait;
use serde_json::json;

use super::charset::decoded;
use super::failure::failed;
use super::ports::{Page, PageReader};
use super::readable;
use super::remote::Remote;
use crate::tools::ToolError;

/// Default base URL.
pub(super) const BASE: &str = "https://r.jina.ai";

/// Client of Jina's API.
#[derive(Debug)]
pub(super) struct Jina {
    pub(super) remote: Remote,
    /// Time limit for rendering, in seconds.
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
