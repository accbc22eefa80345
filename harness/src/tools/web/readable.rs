//! The main text of a page, as Markdown.

use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};

use super::ports::Page;
use super::tree;
use crate::tools::ToolError;

/// The most elements of a page whose main text is looked for.
const MOST_ELEMENTS: usize = 50_000;
/// The most [work](tree::work) of such a page.
const MOST_WORK: usize = 64 << 20;
/// The most bytes of its headings and of the title that each of them is compared with.
const MOST_COMPARED: usize = 4 << 20;

/// Reads a page without holding up the caller's thread.
pub(super) async fn read(html: String, url: String) -> Result<Page, ToolError> {
    tree::with(html, move |page| page_of(page, &url)).await
}

/// The main text of a page; all of its text where none is the main one.
fn page_of(page: Document, url: &str) -> Page {
    let article = is_searched(&page)
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

/// Whether finding the main text of a page ends in time.
fn is_searched(page: &Document) -> bool {
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
    elements <= MOST_ELEMENTS
        && tree::work(page).is_some_and(|work| work <= MOST_WORK)
        && compared <= MOST_COMPARED
}

fn article_of(page: Document, url: &str) -> Option<Page> {
    // What is in it is read for every element around it, to find out whether it is a film.
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
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn page_of(html: &str) -> Page {
        super::page_of(
            tree::parsed(html, Instant::now() + Duration::from_secs(60)).unwrap(),
            "https://deer.test/a",
        )
    }

    #[test]
    fn the_article_is_kept_and_what_stands_around_it_is_not() {
        let paragraph =
            "A sentence about deer, who live in woods, in parks, and on hills; they eat leaves. "
                .repeat(9);
        let html = format!(
            "<html><head><title>Of deer</title></head><body><nav><a href='/'>Home</a><a href='/buy'>Buy now</a></nav>\
             <article><h2>Where they live</h2><p>{paragraph}</p><p>{paragraph}<a href='/more'>more</a></p>\
             <pre><code>let deer = 1;</code></pre></article><footer>Imprint</footer></body></html>"
        );
        let page = page_of(&html);
        assert_eq!(page.title.as_deref(), Some("Of deer"));
        assert!(
            page.text.contains("Where they live")
                && page.text.contains("[more](https://deer.test/more)"),
            "{}",
            page.text
        );
        assert!(
            page.text.contains("```\nlet deer = 1;\n```"),
            "{}",
            page.text
        );
        assert!(!page.text.contains("Buy now"), "{}", page.text);
    }

    #[test]
    fn a_page_of_few_words_is_not_lost() {
        let page = page_of("<title>t</title><body>Hello <b>you</b><script>x()</script>");
        assert!(
            page.text.contains("Hello **you**") && !page.text.contains("x()"),
            "{page:?}"
        );
        let empty = page_of("");
        assert_eq!(empty.text.trim(), "");
    }

    #[test]
    fn of_a_page_that_is_too_much_to_search_all_is_read() {
        let many = page_of(&format!(
            "<title>Of deer</title>{}<p>woods",
            "<br>".repeat(MOST_ELEMENTS)
        ));
        assert!(many.text.contains("woods") && many.title.as_deref() == Some("Of deer"));
        let long = page_of(&format!(
            "<title>{}</title>{}<p>woods",
            "a ".repeat(500_000),
            "<h1>x</h1>".repeat(10_000)
        ));
        assert!(long.text.contains("woods"));
    }

    #[test]
    fn as_deep_as_pages_may_be_they_are_read_on_a_small_stack() {
        for part in [
            "<em>",
            "<blockquote>",
            "<div><b>",
            "<ul><li>",
            "<ul><li><blockquote>",
            "<table><tr><td>",
            "<a href=x><svg><a>",
            "<noscript>",
        ] {
            let per = part.matches('<').count() + usize::from(part.contains("<tr>"));
            let page = page_of(&format!("{}deer", part.repeat(240 / per)));
            assert!(
                page.text.contains("deer") || part.contains("svg"),
                "{part} {page:?}"
            );
        }
    }
}
