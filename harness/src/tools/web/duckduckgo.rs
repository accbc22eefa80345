//! Adapter for DuckDuckGo's plain HTML result page, which needs no key.

use async_trait::async_trait;
use dom_query::Document;
use reqwest::header::CONTENT_TYPE;
use reqwest::{StatusCode, Url};
use serde_json::Map;

use super::failure::failed;
use super::ports::{Hit, PageFinder, Query};
use super::remote::Remote;
use super::tree;
use crate::tools::ToolError;

/// Default base URL of the HTML search.
pub(super) const BASE: &str = "https://html.duckduckgo.com";
/// Maximum number of results of one page.
pub(super) const MAX_RESULTS: usize = 30;

/// Client of DuckDuckGo's HTML search.
#[derive(Debug)]
pub(super) struct DuckDuckGo {
    pub(super) remote: Remote,
    pub(super) max_results: usize,
    /// Country and language, such as `us-en`; `wt-wt` for none.
    pub(super) region: String,
    pub(super) safe: Safe,
}

/// Safe search level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Safe {
    On,
    Moderate,
    Off,
}

impl Safe {
    /// Parses `on`, `moderate` or `off`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "on" => Some(Self::On),
            "moderate" => Some(Self::Moderate),
            "off" => Some(Self::Off),
            _ => None,
        }
    }

    fn for_pages(self) -> &'static str {
        match self {
            Self::On => "1",
            Self::Moderate => "-1",
            Self::Off => "-2",
        }
    }

    /// Returns the parameter value of the image search.
    pub(super) fn for_images(self) -> &'static str {
        match self {
            Self::On | Self::Moderate => "1",
            Self::Off => "-1",
        }
    }
}

#[async_trait]
impl PageFinder for DuckDuckGo {
    async fn find(&self, query: &Query) -> Result<Vec<Hit>, ToolError> {
        let max_results = query.max_results.map_or(self.max_results, |max_results| {
            max_results.clamp(1, self.max_results)
        });
        let form = form(&[
            ("q", &query.text),
            ("b", ""),
            ("kl", &self.region),
            ("kp", self.safe.for_pages()),
        ]);
        let request = self
            .remote
            .post("/html/")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form);
        let answer = self.remote.ask(request).await?;
        // DuckDuckGo uses this status if it takes the caller for a robot.
        if answer.status == StatusCode::ACCEPTED {
            return Err(failed(
                "DuckDuckGo rejects further searches for now; try again later",
            ));
        }
        tree::parse_with(
            String::from_utf8_lossy(&answer.body).into_owned(),
            move |page| hits_of(&page, max_results),
        )
        .await
    }
}

/// Parses the first results of a result page. Advertisements are skipped.
fn hits_of(page: &Document, max_results: usize) -> Vec<Hit> {
    let mut hits: Vec<Hit> = Vec::new();
    for result in page.select("div.result, div.web-result").iter() {
        if hits.len() >= max_results {
            break;
        }
        let link = result.select("a.result__a");
        let Some(url) = link.attr("href").and_then(|href| target(&href)) else {
            continue;
        };
        if hits.iter().any(|known| known.url == url) {
            continue;
        }
        let text = result.select(".result__snippet").text();
        hits.push(Hit {
            title: plain(&link.text()),
            url,
            text: plain(&text),
            more: Map::new(),
        });
    }
    hits
}

/// Returns the address of a result, with DuckDuckGo's redirect link resolved; `None` for an
/// advertisement.
fn target(href: &str) -> Option<String> {
    let base = Url::parse(BASE).ok()?;
    let url = base.join(href).ok()?;
    let own = url
        .host_str()
        .is_some_and(|host| host == "duckduckgo.com" || host.ends_with(".duckduckgo.com"));
    let url = match own {
        true if url.path() == "/l/" => url
            .query_pairs()
            .find(|(key, _)| key == "uddg")
            .map(|(_, to)| to.into_owned())?,
        true => return None,
        false => url.into(),
    };
    let leads_to_ad = url.contains("duckduckgo.com/y.js");
    (!leads_to_ad && (url.starts_with("http://") || url.starts_with("https://"))).then_some(url)
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Encodes the fields as a form body.
fn form(fields: &[(&str, &str)]) -> String {
    let url = Url::parse_with_params(BASE, fields);
    url.ok()
        .and_then(|url| url.query().map(str::to_owned))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_parsed_without_advertisements() {
        let page = r#"<div class="results">
            <div class="result results_links result--ad"><h2><a class="result__a" href="https://duckduckgo.com/y.js?ad_domain=x">Ad</a></h2></div>
            <div class="result results_links web-result"><h2><a class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.test%2F%3Fx%3D1%26y&amp;rut=9">Of  <b>deer</b></a></h2>
              <a class="result__snippet" href="x">They live
                 in <b>woods</b>.</a></div>
            <div class="result"><a class="result__a" href="https://b.test/">B</a></div>
            <div class="result"><a class="result__a" href="https://b.test/">B again</a></div>
            <div class="result"><a class="result__a" href="javascript:alert(1)">bad</a></div>
            <div class="result">nothing</div></div>"#;
        let page = Document::from(page);
        assert_eq!(hits_of(&page, 1).len(), 1);
        let hits = hits_of(&page, 9);
        assert_eq!(hits.len(), 2, "{hits:?}");
        assert_eq!(
            (&*hits[0].title, &*hits[0].url, &*hits[0].text),
            ("Of deer", "https://a.test/?x=1&y", "They live in woods.")
        );
        assert_eq!((&*hits[1].url, &*hits[1].text), ("https://b.test/", ""));
        assert_eq!(form(&[("q", "a b&c"), ("b", "")]), "q=a+b%26c&b=");
    }
}
