//! Serper: Google's results.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::Remote;
use super::ports::{Hit, PageFinder, Picture, PictureFinder, Query, items, text_of};
use crate::net::Egress;
use crate::tools::ToolError;

/// Its server.
pub(super) const BASE: &str = "https://google.serper.dev";
/// The most results that it gives.
pub(super) const MOST: usize = 10;
/// The longest question it takes, in characters.
const LONGEST: usize = 500;

/// Serper's API.
#[derive(Debug)]
pub(super) struct Serper {
    pub(super) remote: Remote,
    pub(super) most: usize,
}

impl Serper {
    async fn ask(&self, path: &str, query: &Query) -> Result<(Value, usize), ToolError> {
        let most = query
            .most
            .map_or(self.most, |most| most.clamp(1, self.most));
        let words: String = query.text.chars().take(LONGEST).collect();
        let answer = self
            .remote
            .json(
                self.remote
                    .post(path)
                    .json(&json!({ "q": words, "num": most })),
            )
            .await?;
        Ok((answer, most))
    }
}

#[async_trait]
impl PageFinder for Serper {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError> {
        let (answer, most) = self.ask("/search", query).await?;
        Ok(items(&answer["organic"])
            .filter_map(|item| Hit::read(item, "link", "snippet"))
            .take(most)
            .collect())
    }
}

#[async_trait]
impl PictureFinder for Serper {
    async fn find_pictures(&self, query: &Query) -> Result<Vec<Picture>, ToolError> {
        let (answer, most) = self.ask("/images", query).await?;
        let strict = Egress::default();
        let public = |url: &str| strict.read(url).is_ok();
        let pictures = items(&answer["images"]).map(|item| Picture {
            title: text_of(item, "title"),
            image_url: text_of(item, "imageUrl"),
            thumbnail_url: Some(text_of(item, "thumbnailUrl"))
                .filter(|url| public(url))
                .unwrap_or_default(),
            more: Map::new(),
        });
        Ok(pictures
            .filter(|picture| public(&picture.image_url))
            .take(most)
            .collect())
    }
}
