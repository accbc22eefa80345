//! Adapter for Brave's search API.

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::ports::{Hit, ImageFinder, ImageHit, PageFinder, Query, items, text_of};
use super::remote::Remote;
use crate::tools::ToolError;

/// Default base URL.
pub(super) const BASE: &str = "https://api.search.brave.com";
/// Maximum number of pages per search.
pub(super) const MAX_RESULTS: usize = 20;
/// Maximum number of images per search.
pub(super) const MAX_IMAGES: usize = 200;
/// Maximum length of a query, in characters.
const MAX_QUERY_CHARS: usize = 400;

/// Client of Brave's API.
#[derive(Debug)]
pub(super) struct Brave {
    pub(super) remote: Remote,
    pub(super) max_results: usize,
    /// Configured parameters of image searches, such as country and language.
    pub(super) options: Vec<(&'static str, String)>,
}

impl Brave {
    async fn ask(
        &self,
        path: &str,
        query: &Query,
        options: &[(&str, String)],
    ) -> Result<(Value, usize), ToolError> {
        let max_results = query.max_results.map_or(self.max_results, |max_results| {
            max_results.clamp(1, self.max_results)
        });
        let words: String = query.text.chars().take(MAX_QUERY_CHARS).collect();
        let request = self
            .remote
            .get(path)
            .query(&[("q", words), ("count", max_results.to_string())])
            .query(options);
        Ok((self.remote.json(request).await?, max_results))
    }
}

#[async_trait]
impl PageFinder for Brave {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError> {
        let plain = [("text_decorations", "false".to_owned())];
        let (answer, max_results) = self.ask("/res/v1/web/search", query, &plain).await?;
        Ok(items(&answer["web"]["results"])
            .filter_map(|item| Hit::read(item, "url", "description"))
            .take(max_results)
            .collect())
    }
}

#[async_trait]
impl ImageFinder for Brave {
    async fn find_images(&self, query: &Query) -> Result<Vec<ImageHit>, ToolError> {
        let (answer, max_results) = self
            .ask("/res/v1/images/search", query, &self.options)
            .await?;
        let images = items(&answer["results"]).map(|item| {
            let image = &item["properties"];
            let more = [
                ("source_url", item["url"].clone()),
                ("source", item["source"].clone()),
                ("width", image["width"].clone()),
                ("height", image["height"].clone()),
            ];
            ImageHit {
                title: text_of(item, "title"),
                image_url: text_of(image, "url"),
                thumbnail_url: text_of(&item["thumbnail"], "src"),
                more: more
                    .into_iter()
                    .filter(|(_, value)| !value.is_null())
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect::<Map<_, _>>(),
            }
        });
        Ok(images
            .filter(|image| !image.image_url.is_empty())
            .take(max_results)
            .collect())
    }
}
