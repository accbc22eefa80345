//! Tests of hostile pages.

use rustix::time::{ClockId, clock_gettime};

use super::*;

fn in_time(html: &str) -> Result<Document, PageRejection> {
    parsed(html, Instant::now() + Duration::from_secs(600))
}

/// Returns the CPU time of this thread, which does not depend on the load of the machine.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

#[test]
fn ordinary_pages_are_complete() {
    let html = "<!DOCTYPE html><title>a<b</title><script>'<div><div>'</script><!-- <div> --><p class=x>ü<noscript><i>b</i></noscript><li>c";
    assert_eq!(in_time(html).unwrap().html(), Document::from(html).html());
    assert_eq!(
        in_time(&format!("{}{html}", "<div></div>".repeat(10_000)))
            .unwrap()
            .select("div")
            .length(),
        10_000
    );
    for odd in [
        "",
        "<",
        "</",
        "<!--",
        "<!",
        "<a",
        "</>",
        "<script",
        "ü<ü",
        "<script></scrip",
        "<title></titlé>",
        "\u{feff}",
        "&am",
    ] {
        assert!(in_time(odd).is_ok(), "{odd}");
    }
}

/// Elements that a text-level check would miss are visible in the tree.
#[test]
fn deep_pages_are_rejected_in_any_notation() {
    let parts = [
        "<em>",
        "<div>",
        "<B>",
        "<div></span>",
        "<x-y>",
        "<ul><li>",
        "<table><tr><td>",
        "<div><noscript>",
        "<svg><g>",
        "<svg><title>",
        "<svg><p>",
        "<svg><title><p>",
        "<math><mi><p>",
        "<svg><desc><b>",
        "<!--x--!><em>",
        "<object><p>",
        "<dd><div>",
    ];
    for part in parts {
        for start in [
            "",
            "<!-->",
            "<!--->",
            "<!-- --!>",
            "<svg><style>",
            "<math><xmp>",
            "<svg><script>",
        ] {
            let page = format!("{start}{}text", part.repeat(200_000));
            assert!(
                matches!(
                    in_time(&page),
                    Err(PageRejection::Deep | PageRejection::Large)
                ),
                "{start}{part}"
            );
        }
    }
    let behind = format!(
        "<table>{}<tr><td>x",
        (0..1_000).map(|n| format!("<b a{n}>")).collect::<String>()
    );
    assert!(
        matches!(in_time(&behind), Err(PageRejection::Deep)),
        "the parser moves content outside of cells before the table"
    );
}

#[test]
fn parsing_stops_at_time_and_size_limits() {
    let slow = format!(
        "<table>{}",
        (0..150_000)
            .map(|n| format!("<b a{n}>"))
            .collect::<String>()
    );
    let started = cpu_time();
    assert!(matches!(
        parsed(&slow, Instant::now() + Duration::from_millis(300)),
        Err(PageRejection::Slow)
    ));
    let took = cpu_time() - started;
    assert!(took < Duration::from_secs(10), "{took:?}");
    let attributes: String = (0..100_000).map(|n| format!(" a{n}=1")).collect();
    let one_tag = format!("<b{attributes}");
    assert!(matches!(
        parsed(&one_tag, Instant::now()),
        Err(PageRejection::Slow)
    ));

    let repeated = format!(
        "<p>{}{}",
        (0..200).map(|n| format!("<b a{n}>")).collect::<String>(),
        "</p><p>x".repeat(100_000)
    );
    assert!(matches!(in_time(&repeated), Err(PageRejection::Large)));
    assert!(matches!(
        in_time(&"<!-->".repeat(200_000)),
        Err(PageRejection::Large)
    ));
    let many = in_time(&format!(
        "<p><b{}>x",
        (0..1_000).map(|n| format!(" a{n}=1")).collect::<String>()
    ))
    .unwrap();
    assert_eq!(many.select("b").nodes()[0].attrs().len(), MAX_ATTRIBUTES);
    assert!(
        in_time(&"x".repeat(MAX_PAGE_BYTES * 2))
            .unwrap()
            .text()
            .len()
            <= MAX_PAGE_BYTES
    );
}

#[tokio::test]
async fn rejected_page_releases_permit() {
    for _ in 0..9 {
        let refused = parse_with("<em>".repeat(5_000), |_| ()).await;
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("nested too deeply")
        );
    }
    assert_eq!(
        parse_with("<p>deer".to_owned(), |page| page.text().to_string())
            .await
            .unwrap(),
        "deer"
    );
}
