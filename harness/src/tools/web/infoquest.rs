//! Adapter for BytePlus InfoQuest: search, image search, and a page reader with its own address.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::failure::failed;
use super::ports::{
    Hit, ImageFinder, ImageHit, Page, PageFinder, PageReader, Query, items, text_of,
};
use super::readable;
use super::remote::Remote;
use crate::tools::ToolError;

/// Default base URL of the search.
pub(super) const SEARCH_BASE: &str = "https://search.infoquest.bytepluses.com";
/// Default base URL of the page reader.
pub(super) const READER_BASE: &str = "https://reader.infoquest.bytepluses.com";

/// Client of InfoQuest's API.
#[derive(Debug)]
pub(super) struct InfoQuest {
    pub(super) remote: Remote,
    pub(super) max_results: usize,
    /// Further fields of each request, as configured.
    pub(super) options: Map<String, Value>,
}

impl InfoQuest {
    async fn search(&self, query: &Query, more: Value) -> Result<Value, ToolError> {
        let mut body = json!({ "format": "JSON", "query": query.text });
        for fields in [Some(&self.options), more.as_object()]
            .into_iter()
            .flatten()
        {
            body.as_object_mut()
                .into_iter()
                .for_each(|body| body.extend(fields.clone()));
        }
        self.remote.json(self.remote.post("/").json(&body)).await
    }
}

/// Returns the lists called `name` of a response, which are nested below its results.
fn lists<'a>(answer: &'a Value, name: &'a str) -> impl Iterator<Item = &'a Value> {
    let results =
        items(&answer["search_result"]["results"]).map(|result| &result["content"]["results"]);
    results.flat_map(move |result| items(&result[name]))
}

#[async_trait]
impl PageFinder for InfoQuest {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError> {
        let answer = self.search(query, Value::Null).await?;
        let top_stories = items(&answer["search_result"]["results"])
            .flat_map(|result| items(&result["content"]["results"]["top_stories"]["items"]));
        let mut hits: Vec<Hit> = Vec::new();
        for hit in lists(&answer, "organic")
            .chain(top_stories)
            .filter_map(|item| Hit::read(item, "url", "desc"))
        {
            if hits.iter().all(|known| known.url != hit.url) {
                hits.push(hit);
            }
        }
        hits.truncate(query.max_results.map_or(self.max_results, |max_results| {
            max_results.min(self.max_results)
        }));
        Ok(hits)
    }
}

#[async_trait]
impl ImageFinder for InfoQuest {
    async fn find_images(&self, query: &Query) -> Result<Vec<ImageHit>, ToolError> {
        let answer = self
            .search(query, json!({ "search_type": "Images" }))
            .await?;
        let images = lists(&answer, "images_results").map(|item| ImageHit {
            title: text_of(item, "title"),
            image_url: text_of(item, "original"),
            thumbnail_url: text_of(item, "thumbnail"),
            more: Map::new(),
        });
        let max_results = query.max_results.map_or(self.max_results, |max_results| {
            max_results.clamp(1, self.max_results)
        });
        Ok(images
            .filter(|image| !image.image_url.is_empty())
            .take(max_results)
            .collect())
    }
}

#[async_trait]
impl PageReader for InfoQuest {
    async fn read(&self, url: &str) -> Result<Page, ToolError> {
        let mut body = json!({ "url": url, "format": "HTML" });
        if let Some(body) = body.as_object_mut() {
            body.extend(self.options.clone());
        }
        let answer = self.remote.ask(self.remote.post("/").json(&body)).await?;
        // The response is either an object with the page in a field or the page itself.
        let html = match serde_json::from_slice::<Value>(&answer.body) {
            Ok(response) => ["reader_result", "content"]
                .iter()
                .map(|key| text_of(&response, key))
                .find(|html| !html.is_empty())
                .unwrap_or_default(),
            Err(_) => String::from_utf8_lossy(&answer.body).into_owned(),
        };
        if html.trim().is_empty() {
            return Err(failed("InfoQuest found nothing on this page"));
        }
        readable::read(html, url.to_owned()).await
    }
}
