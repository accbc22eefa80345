//! Extracts the main text of a page as Markdown.

use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};

use super::ports::Page;
use super::tree;
use crate::tools::ToolError;

/// Maximum number of elements of a page for extracting its main text.
const MAX_ELEMENTS: usize = 50_000;
/// Maximum [work](tree::work) of such a page.
const MAX_WORK: usize = 64 << 20;
/// Maximum size of the headings and the title that extraction compares with each other, in bytes.
const MAX_COMPARED_BYTES: usize = 4 << 20;

/// Reads a page without blocking the caller's thread.
pub(super) async fn read(html: String, url: String) -> Result<Page, ToolError> {
    tree::parse_with(html, move |page| page_of(page, &url)).await
}

/// Returns the main text of a page, or all of its text if no main text is found.
fn page_of(page: Document, url: &str) -> Page {
    let article = is_extractable(&page)
        .then(|| article_of(page.clone(), url))
        .flatten();
    article.unwrap_or_else(|| {
        let title = page.select_single("title").text().trim().to_owned();
        let text = page.body().map(|body| {
            body.md(Some(&["script", "style", "noscript", "template", "svg"]))
                .to_string()
        });
        Page {
            title: Some(title),
            text: text.unwrap_or_default(),
        }
    })
}

/// Reports whether extracting the main text finishes in bounded time.
fn is_extractable(page: &Document) -> bool {
    let elements = page
        .root()
        .descendants_it()
        .filter(|node| node.is_element())
        .count();
    let metas = page
        .select("meta[content]")
        .iter()
        .filter_map(|meta| meta.attr("content"))
        .map(|title| title.len());
    let titles = ["title", "h1"]
        .map(|title| page.select_single(title).text().len())
        .into_iter()
        .chain(metas);
    let title = titles.max().unwrap_or_default();
    let compared: usize = page
        .select("h1, h2")
        .iter()
        .map(|heading| title + heading.text().len())
        .sum();
    elements <= MAX_ELEMENTS
        && tree::work(page).is_some_and(|work| work <= MAX_WORK)
        && compared <= MAX_COMPARED_BYTES
}

fn article_of(page: Document, url: &str) -> Option<Page> {
    // The extraction reads the content of `object` again for every surrounding element, to detect
    // videos.
    page.select("object").rename("div");
    let settings = Config {
        disable_json_ld: true,
        text_mode: TextMode::Markdown,
        ..Config::default()
    };
    let article = Readability::with_document(page, Some(url), Some(settings))
        .and_then(|mut page| page.parse())
        .ok()?;
    let has_text = !article.text_content.trim().is_empty();
    has_text.then(|| Page {
        title: Some(article.title),
        text: article.text_content.to_string(),
    })
}

#[cfg(test)]
#[path = "readable_tests.rs"]
mod tests;
