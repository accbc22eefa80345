//! Tests of the extraction of the main text of a page.

use std::time::{Duration, Instant};

use super::*;

fn page_of(html: &str) -> Page {
    super::page_of(
        tree::parsed(html, Instant::now() + Duration::from_secs(60)).unwrap(),
        "https://deer.test/a",
    )
}

#[test]
fn article_is_extracted_without_surroundings() {
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
fn short_page_is_returned_whole() {
    let page = page_of("<title>t</title><body>Hello <b>you</b><script>x()</script>");
    assert!(
        page.text.contains("Hello **you**") && !page.text.contains("x()"),
        "{page:?}"
    );
    let empty = page_of("");
    assert_eq!(empty.text.trim(), "");
}

#[test]
fn page_too_large_for_extraction_is_returned_whole() {
    let many = page_of(&format!(
        "<title>Of deer</title>{}<p>woods",
        "<br>".repeat(MAX_ELEMENTS)
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
fn deepest_allowed_page_is_read_on_small_stack() {
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
