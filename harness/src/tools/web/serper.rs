//! Adapter for Serper, which returns Google's results.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::ports::{Hit, ImageFinder, ImageHit, PageFinder, Query, items, text_of};
use super::remote::Remote;
use crate::net::Egress;
use crate::tools::ToolError;

/// Default base URL.
pub(super) const BASE: &str = "https://google.serper.dev";
/// Maximum number of results per search.
pub(super) const MAX_RESULTS: usize = 10;
/// Maximum length of a query, in characters.
const MAX_QUERY_CHARS: usize = 500;

/// Client of Serper's API.
#[derive(Debug)]
pub(super) struct Serper {
    pub(super) remote: Remote,
    pub(super) max_results: usize,
}

impl Serper {
    async fn ask(&self, path: &str, query: &Query) -> Result<(Value, usize), ToolError> {
        let max_results = query.max_results.map_or(self.max_results, |max_results| {
            max_results.clamp(1, self.max_results)
        });
        let words: String = query.text.chars().take(MAX_QUERY_CHARS).collect();
        let answer = self
            .remote
            .json(
                self.remote
                    .post(path)
                    .json(&json!({ "q": words, "num": max_results })),
            )
            .await?;
        Ok((answer, max_results))
    }
}

#[async_trait]
impl PageFinder for Serper {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError> {
        let (answer, max_results) = self.ask("/search", query).await?;
        Ok(items(&answer["organic"])
            .filter_map(|item| Hit::read(item, "link", "snippet"))
            .take(max_results)
            .collect())
    }
}

#[async_trait]
impl ImageFinder for Serper {
    async fn find_images(&self, query: &Query) -> Result<Vec<ImageHit>, ToolError> {
        let (answer, max_results) = self.ask("/images", query).await?;
        let strict = Egress::default();
        let public = |url: &str| strict.read(url).is_ok();
        let images = items(&answer["images"]).map(|item| ImageHit {
            title: text_of(item, "title"),
            image_url: text_of(item, "imageUrl"),
            thumbnail_url: Some(text_of(item, "thumbnailUrl"))
                .filter(|url| public(url))
                .unwrap_or_default(),
            more: Map::new(),
        });
        Ok(images
            .filter(|image| public(&image.image_url))
            .take(max_results)
            .collect())
    }
}
