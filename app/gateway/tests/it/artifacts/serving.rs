//! Served and rejected paths, with their headers.

use harness::testkit::skill_archives::{Entry, archive, hostile, skill_text};
use serde_json::json;

use super::with_file;
use crate::support::Gateway;

#[tokio::test]
async fn text_is_inline_and_downloaded_on_request() {
    let gateway = Gateway::new();
    let base = with_file(&gateway, "report.md", "# R\n").await;
    let shown = gateway.get(&format!("{base}/report.md")).await;
    assert_eq!((shown.code(), shown.text()), (200, "# R\n"));
    assert_eq!(shown.header("content-type"), "text/markdown; charset=utf-8");
    assert_eq!(
        shown.header("content-disposition"),
        "inline; filename=\"report.md\"; filename*=UTF-8''report.md"
    );
    assert_eq!(
        (
            shown.header("accept-ranges"),
            shown.header("x-content-type-options")
        ),
        ("bytes", "nosniff")
    );
    assert_eq!(
        shown.header("cross-origin-resource-policy"),
        "same-site",
        "pages of the configured origin show images"
    );
    assert_eq!(shown.header("etag").len(), 66);
    let tag = shown.header("etag").to_owned();
    let known = gateway
        .raw(
            "GET",
            &format!("{base}/report.md"),
            "",
            &[("if-none-match", &tag)],
        )
        .await;
    assert_eq!((known.code(), known.body.len()), (304, 0));
    let download = gateway
        .get(&format!("{base}/report.md?download=true"))
        .await;
    assert!(
        download
            .header("content-disposition")
            .starts_with("attachment")
    );
}

#[tokio::test]
async fn ranges_are_served_from_small_and_large_files() {
    let gateway = Gateway::new();
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let base = with_file(&gateway, "large.bin", large.clone()).await;
    let whole = gateway.get(&format!("{base}/large.bin")).await;
    assert_eq!((whole.code(), &whole.body[..]), (200, &large[..]));
    let part = gateway
        .raw(
            "GET",
            &format!("{base}/large.bin"),
            "",
            &[("range", "bytes=2999990-")],
        )
        .await;
    assert_eq!((part.code(), &part.body[..]), (206, &large[2_999_990..]));
    assert_eq!(
        part.header("content-range"),
        "bytes 2999990-2999999/3000000"
    );
    let base = with_file(&gateway, "small.txt", "0123456789").await;
    let part = gateway
        .raw(
            "GET",
            &format!("{base}/small.txt"),
            "",
            &[("range", "bytes=2-4")],
        )
        .await;
    assert_eq!(
        (part.code(), part.text(), part.header("content-length")),
        (206, "234", "3")
    );
    let tag = part.header("etag").to_owned();
    for (seen, code, text) in [
        (&*tag, 206, "234"),
        ("\"other\"", 200, "0123456789"),
        (&format!("W/{tag}"), 200, "0123456789"),
    ] {
        let resumed = gateway
            .raw(
                "GET",
                &format!("{base}/small.txt"),
                "",
                &[("range", "bytes=2-4"), ("if-range", seen)],
            )
            .await;
        assert_eq!((resumed.code(), resumed.text()), (code, text), "{seen}");
    }
    let none = gateway
        .raw(
            "GET",
            &format!("{base}/small.txt"),
            "",
            &[("range", "bytes=10-")],
        )
        .await;
    assert_eq!(
        (none.code(), none.header("content-range")),
        (416, "bytes */10")
    );
}

#[tokio::test]
async fn media_play_in_the_viewers_of_browsers() {
    let gateway = Gateway::new();
    let (media, pdf) = (
        [
            "media-src 'self'",
            "img-src 'self'",
            "style-src 'unsafe-inline'",
        ],
        ["object-src 'self'", "style-src 'unsafe-inline'"],
    );
    for (name, kind, allowed) in [
        ("song.mp3", "audio/mpeg", &media[..]),
        ("talk.m4a", "audio/mp4", &media[..]),
        ("noise.wav", "audio/wav", &media[..]),
        ("film.mp4", "video/mp4", &media[..]),
        ("film.webm", "video/webm", &media[..]),
        ("plot.png", "image/png", &media[..]),
        ("paper.pdf", "application/pdf", &pdf[..]),
        (
            "notes.txt",
            "text/plain; charset=utf-8",
            &["style-src 'unsafe-inline'"][..],
        ),
    ] {
        let base = with_file(&gateway, name, "0123456789").await;
        let shown = gateway.get(&format!("{base}/{name}")).await;
        assert_eq!(
            (shown.code(), shown.header("content-type")),
            (200, kind),
            "{name}"
        );
        assert!(
            shown.header("content-disposition").starts_with("inline"),
            "{name}"
        );
        let policy = shown.header("content-security-policy");
        assert!(
            policy.contains("default-src 'none'") && !policy.contains("script"),
            "{name}: {policy}"
        );
        assert!(
            allowed.iter().all(|directive| policy.contains(directive)),
            "{name}: {policy}"
        );
        // Players request the whole file as a range first, and parts of it on a seek.
        for (range, text, part) in [
            ("bytes=0-", "0123456789", "bytes 0-9/10"),
            ("bytes=4-", "456789", "bytes 4-9/10"),
        ] {
            let played = gateway
                .raw("GET", &format!("{base}/{name}"), "", &[("range", range)])
                .await;
            assert_eq!(
                (played.code(), played.text(), played.header("content-range")),
                (206, text, part),
                "{name} {range}"
            );
            assert_eq!(played.header("content-security-policy"), policy, "{name}");
        }
    }
}

#[tokio::test]
async fn active_content_is_only_ever_downloaded() {
    let gateway = Gateway::new();
    for name in ["x.html", "x.svg", "x.xml", "x.xsl", "x.js"] {
        let base = with_file(&gateway, name, "<script>alert(1)</script>").await;
        let sent = gateway.get(&format!("{base}/{name}")).await;
        assert!(
            sent.header("content-disposition").starts_with("attachment"),
            "{name}"
        );
        assert_eq!(
            sent.header("content-security-policy"),
            "sandbox; default-src 'none'; frame-ancestors 'self'"
        );
    }
}

#[tokio::test]
async fn path_traversal_is_rejected_without_host_details() {
    let gateway = Gateway::new();
    let base = with_file(&gateway, "a.txt", "a").await;
    let root = base
        .strip_suffix("/mnt/user-data/outputs")
        .expect("a base")
        .to_owned();
    for (path, code, detail) in [
        (
            format!("{root}/etc/passwd"),
            400,
            "Path must start with /mnt/user-data",
        ),
        (
            format!("{base}/../../../etc/passwd"),
            403,
            "Access denied: path traversal detected",
        ),
        (
            format!("{base}/%2e%2e/%2e%2e/x"),
            403,
            "Access denied: path traversal detected",
        ),
        (
            format!("{base}/missing.txt"),
            404,
            "Artifact not found: mnt/user-data/outputs/missing.txt",
        ),
        (
            base.clone(),
            400,
            "Path is not a file: mnt/user-data/outputs",
        ),
    ] {
        let response = gateway.get(&path).await;
        assert_eq!(
            (response.code(), response.json()),
            (code, json!({ "detail": detail })),
            "{path}"
        );
    }
    let foreign = base.replace("/api/threads/", "/api/threads/x");
    assert_eq!(gateway.get(&format!("{foreign}/a.txt")).await.code(), 404);
}

#[tokio::test]
async fn skill_archive_members_are_served_unless_malformed() {
    let gateway = Gateway::new();
    let skill = skill_text("web");
    let large = Entry::file("web/large", vec![b'x'; (16 << 20) + 1]);
    let bytes = archive(&[
        Entry::file("web/SKILL.md", &*skill),
        Entry::file("web/page.html", "<script>"),
        large,
    ]);
    let base = with_file(&gateway, "web.skill", bytes).await;
    for name in ["SKILL.md", "web/SKILL.md"] {
        let shown = gateway.get(&format!("{base}/web.skill/{name}")).await;
        assert_eq!(
            (shown.code(), shown.text()),
            (200, skill.as_str()),
            "{name}"
        );
        assert_eq!(
            (shown.header("cache-control"), shown.header("content-type")),
            ("private, max-age=300", "text/markdown; charset=utf-8")
        );
    }
    let part = gateway
        .raw(
            "GET",
            &format!("{base}/web.skill/SKILL.md"),
            "",
            &[("range", "bytes=0-2")],
        )
        .await;
    assert_eq!((part.code(), part.text()), (206, "---"));
    let page = gateway.get(&format!("{base}/web.skill/page.html")).await;
    assert!(page.header("content-disposition").starts_with("attachment"));
    let none = gateway.get(&format!("{base}/web.skill/none.md")).await;
    assert_eq!(
        (none.code(), none.json()),
        (
            404,
            json!({ "detail": "File 'none.md' not found in skill archive" })
        )
    );
    assert_eq!(
        gateway.get(&format!("{base}/web.skill/large")).await.code(),
        413
    );
    assert_eq!(
        gateway
            .get(&format!("{base}/none.skill/SKILL.md"))
            .await
            .code(),
        404
    );
    for (what, bytes) in hostile() {
        let base = with_file(&gateway, "evil.skill", bytes).await;
        let shown = gateway
            .get(&format!("{base}/evil.skill/none.md"))
            .await
            .code();
        assert!((400..500).contains(&shown), "{what}: {shown}");
    }
}
