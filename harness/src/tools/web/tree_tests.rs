//! What becomes of pages that are made to hurt.

use rustix::time::{ClockId, clock_gettime};

use super::*;

fn in_time(html: &str) -> Result<Document, Unfit> {
    parsed(html, Instant::now() + Duration::from_secs(600))
}

/// How long this thread has been at work: what else the machine does meanwhile does not count.
fn time_at_work() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

#[test]
fn usual_pages_are_whole() {
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

/// Whatever hides from a reader of the text that elements are there is seen in the tree.
#[test]
fn deep_pages_are_refused_however_they_are_written() {
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
                matches!(in_time(&page), Err(Unfit::Deep | Unfit::Large)),
                "{start}{part}"
            );
        }
    }
    let behind = format!(
        "<table>{}<tr><td>x",
        (0..1_000).map(|n| format!("<b a{n}>")).collect::<String>()
    );
    assert!(
        matches!(in_time(&behind), Err(Unfit::Deep)),
        "what stands in no cell goes before its table"
    );
}

#[test]
fn a_page_ends_when_its_time_or_its_room_does() {
    let slow = format!(
        "<table>{}",
        (0..150_000)
            .map(|n| format!("<b a{n}>"))
            .collect::<String>()
    );
    let begun = time_at_work();
    assert!(matches!(
        parsed(&slow, Instant::now() + Duration::from_millis(300)),
        Err(Unfit::Slow)
    ));
    let took = time_at_work() - begun;
    assert!(took < Duration::from_secs(10), "{took:?}");
    let attributes: String = (0..100_000).map(|n| format!(" a{n}=1")).collect();
    let one_tag = format!("<b{attributes}");
    assert!(matches!(parsed(&one_tag, Instant::now()), Err(Unfit::Slow)));

    let repeated = format!(
        "<p>{}{}",
        (0..200).map(|n| format!("<b a{n}>")).collect::<String>(),
        "</p><p>x".repeat(100_000)
    );
    assert!(matches!(in_time(&repeated), Err(Unfit::Large)));
    assert!(matches!(
        in_time(&"<!-->".repeat(200_000)),
        Err(Unfit::Large)
    ));
    let many = in_time(&format!(
        "<p><b{}>x",
        (0..1_000).map(|n| format!(" a{n}=1")).collect::<String>()
    ))
    .unwrap();
    assert_eq!(many.select("b").nodes()[0].attrs().len(), MOST_ATTRIBUTES);
    assert!(in_time(&"x".repeat(LONGEST_PAGE * 2)).unwrap().text().len() <= LONGEST_PAGE);
}

#[tokio::test]
async fn a_page_that_is_refused_gives_its_turn_back() {
    for _ in 0..9 {
        let refused = with("<em>".repeat(5_000), |_| ()).await;
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("nested too deeply")
        );
    }
    assert_eq!(
        with("<p>deer".to_owned(), |page| page.text().to_string())
            .await
            .unwrap(),
        "deer"
    );
}
