//! Brave's search API.

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::Remote;
use super::ports::{Hit, PageFinder, Picture, PictureFinder, Query, items, text_of};
use crate::tools::ToolError;

/// Its server.
pub(super) const BASE: &str = "https://api.search.brave.com";
/// The most pages it gives.
pub(super) const MOST: usize = 20;
/// The most pictures it gives.
pub(super) const MOST_PICTURES: usize = 200;
/// The longest question it takes, in characters.
const LONGEST: usize = 400;

/// Brave's API.
#[derive(Debug)]
pub(super) struct Brave {
    pub(super) remote: Remote,
    pub(super) most: usize,
    /// Of pictures: country, language and the like, as configured.
    pub(super) options: Vec<(&'static str, String)>,
}

impl Brave {
    async fn ask(
        &self,
        path: &str,
        query: &Query,
        options: &[(&str, String)],
    ) -> Result<(Value, usize), ToolError> {
        let most = query
            .most
            .map_or(self.most, |most| most.clamp(1, self.most));
        let words: String = query.text.chars().take(LONGEST).collect();
        let request = self
            .remote
            .get(path)
            .query(&[("q", words), ("count", most.to_string())])
            .query(options);
        Ok((self.remote.json(request).await?, most))
    }
}

#[async_trait]
impl PageFinder for Brave {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError> {
        let plain = [("text_decorations", "false".to_owned())];
        let (answer, most) = self.ask("/res/v1/web/search", query, &plain).await?;
        Ok(items(&answer["web"]["results"])
            .filter_map(|item| Hit::read(item, "url", "description"))
            .take(most)
            .collect())
    }
}

#[async_trait]
impl PictureFinder for Brave {
    async fn find_pictures(&self, query: &Query) -> Result<Vec<Picture>, ToolError> {
        let (answer, most) = self
            .ask("/res/v1/images/search", query, &self.options)
            .await?;
        let pictures = items(&answer["results"]).map(|item| {
            let picture = &item["properties"];
            let more = [
                ("source_url", item["url"].clone()),
                ("source", item["source"].clone()),
                ("width", picture["width"].clone()),
                ("height", picture["height"].clone()),
            ];
            Picture {
                title: text_of(item, "title"),
                image_url: text_of(picture, "url"),
                thumbnail_url: text_of(&item["thumbnail"], "src"),
                more: more
                    .into_iter()
                    .filter(|(_, value)| !value.is_null())
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect::<Map<_, _>>(),
            }
        });
        Ok(pictures
            .filter(|picture| !picture.image_url.is_empty())
            .take(most)
            .collect())
    }
}
