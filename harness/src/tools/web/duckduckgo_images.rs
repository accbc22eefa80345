//! Adapter for DuckDuckGo's image search: the first request gets a token, the second the results.

use async_trait::async_trait;
use reqwest::header::REFERER;
use serde_json::Map;

use super::duckduckgo::Safe;
use super::failure::failed;
use super::ports::{ImageFinder, ImageHit, Query, items, text_of};
use super::remote::Remote;
use crate::tools::ToolError;

/// Default base URL.
pub(super) const BASE: &str = "https://duckduckgo.com";
/// Maximum number of images of one page.
pub(super) const MAX_RESULTS: usize = 100;

/// Client of DuckDuckGo's image search.
#[derive(Debug)]
pub(super) struct DuckDuckGoImages {
    pub(super) remote: Remote,
    pub(super) max_results: usize,
    /// Country and language, such as `us-en`; `wt-wt` for none.
    pub(super) region: String,
    pub(super) safe: Safe,
}

#[async_trait]
impl ImageFinder for DuckDuckGoImages {
    async fn find_images(&self, query: &Query) -> Result<Vec<ImageHit>, ToolError> {
        let max_results = query.max_results.map_or(self.max_results, |max_results| {
            max_results.clamp(1, self.max_results)
        });
        let page = self
            .remote
            .ask(self.remote.get("/").query(&[("q", &query.text)]))
            .await?;
        let page = String::from_utf8_lossy(&page.body);
        let token = token_in(&page).ok_or_else(|| {
            failed("DuckDuckGo rejects further searches for now; try again later")
        })?;
        let filters = filters(query);
        let parameters = [
            ("o", "json"),
            ("q", &query.text),
            ("l", &self.region),
            ("vqd", token),
            ("f", &filters),
            ("p", self.safe.for_images()),
        ];
        let request = self
            .remote
            .get("/i.js")
            .query(&parameters)
            .header(REFERER, format!("{}/", self.remote.base()));
        let answer = self.remote.json(request).await?;
        let images = items(&answer["results"]).map(|item| ImageHit {
            title: text_of(item, "title"),
            image_url: text_of(item, "image"),
            thumbnail_url: text_of(item, "thumbnail"),
            more: Map::new(),
        });
        Ok(images
            .filter(|image| !image.image_url.is_empty())
            .take(max_results)
            .collect())
    }
}

/// Extracts the token of a result page, in any quoting.
fn token_in(page: &str) -> Option<&str> {
    let rest = page.split_once("vqd=")?.1.trim_start_matches(['"', '\'']);
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '-')
        .unwrap_or(rest.len());
    Some(&rest[..end]).filter(|token| !token.is_empty())
}

/// Encodes the filters for time, size, colour, type, layout and licence; empty where there is no
/// filter.
fn filters(query: &Query) -> String {
    let filter = |name: &str, value: &Option<String>| {
        let value: String = value
            .iter()
            .flat_map(|value| value.chars())
            .filter(char::is_ascii_alphanumeric)
            .collect();
        if value.is_empty() {
            value
        } else {
            format!("{name}:{value}")
        }
    };
    let [size, kind, layout] = [
        filter("size", &query.size),
        filter("type", &query.kind),
        filter("layout", &query.layout),
    ];
    format!(",{size},,{kind},{layout},")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_extracted_and_filters_are_encoded() {
        for page in ["x vqd=\"4-12\" y", "x&vqd=4-12&y", "vqd='4-12'", "vqd=4-12"] {
            assert_eq!(token_in(page), Some("4-12"), "{page}");
        }
        assert_eq!((token_in("vqd="), token_in("none")), (None, None));
        let query = Query {
            size: Some("Large".to_owned()),
            kind: Some("photo,x:y".to_owned()),
            ..Query::default()
        };
        assert_eq!(filters(&query), ",size:Large,,type:photoxy,,");
    }
}
