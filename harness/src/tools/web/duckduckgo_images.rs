//! DuckDuckGo's search for pictures: first a token, then the list.

use async_trait::async_trait;
use reqwest::header::REFERER;
use serde_json::Map;

use super::duckduckgo::Safe;
use super::ports::{Picture, PictureFinder, Query, items, text_of};
use super::{Remote, failed};
use crate::tools::ToolError;

/// Its server.
pub(super) const BASE: &str = "https://duckduckgo.com";
/// The most pictures of one page.
pub(super) const MOST: usize = 100;

/// DuckDuckGo's search for pictures.
#[derive(Debug)]
pub(super) struct DuckDuckGoImages {
    pub(super) remote: Remote,
    pub(super) most: usize,
    /// Country and language, such as `us-en`; `wt-wt` for none.
    pub(super) region: String,
    pub(super) safe: Safe,
}

#[async_trait]
impl PictureFinder for DuckDuckGoImages {
    async fn find_pictures(&self, query: &Query) -> Result<Vec<Picture>, ToolError> {
        let most = query
            .most
            .map_or(self.most, |most| most.clamp(1, self.most));
        let page = self
            .remote
            .ask(self.remote.get("/").query(&[("q", &query.text)]))
            .await?;
        let page = String::from_utf8_lossy(&page.body);
        let token = token_in(&page).ok_or_else(|| {
            failed("DuckDuckGo answers no more searches for a while; try again later")
        })?;
        let filters = filters(query);
        let asked = [
            ("o", "json"),
            ("q", &query.text),
            ("l", &self.region),
            ("vqd", token),
            ("f", &filters),
            ("p", self.safe.of_pictures()),
        ];
        let request = self
            .remote
            .get("/i.js")
            .query(&asked)
            .header(REFERER, format!("{}/", self.remote.base()));
        let answer = self.remote.json(request).await?;
        let pictures = items(&answer["results"]).map(|item| Picture {
            title: text_of(item, "title"),
            image_url: text_of(item, "image"),
            thumbnail_url: text_of(item, "thumbnail"),
            more: Map::new(),
        });
        Ok(pictures
            .filter(|picture| !picture.image_url.is_empty())
            .take(most)
            .collect())
    }
}

/// The token of a result page, however it is quoted there.
fn token_in(page: &str) -> Option<&str> {
    let rest = page.split_once("vqd=")?.1.trim_start_matches(['"', '\'']);
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '-')
        .unwrap_or(rest.len());
    Some(&rest[..end]).filter(|token| !token.is_empty())
}

/// Time, size, colour, kind, form and licence; empty where any is fine.
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
    fn tokens_are_found_and_filters_written() {
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
