//! What a file may do in a browser that opens it.

use harness::artifacts::FileKind;

/// Nothing: such a file is only downloaded.
const ACTIVE: &str = "sandbox; default-src 'none'";
/// Browsers set text in a page with styles of their own.
const TEXT: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'";
/// Browsers put a player or an image in a page of their own, which fetches the file again from its origin. No policy here lets a
/// script run, so the origin is of use to nothing else.
const MEDIA: &str = "sandbox allow-same-origin; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'";
/// Viewers of PDF are plugins to a browser, and no sandbox lets a plugin in.
const PDF: &str =
    "default-src 'none'; object-src 'self'; img-src 'self'; style-src 'unsafe-inline'";

/// The `Content-Security-Policy` of a file: as much as the browser's own viewer needs.
pub(super) fn content_policy(kind: &FileKind) -> &'static str {
    let media = ["audio/", "video/", "image/"]
        .iter()
        .any(|family| kind.media_type.starts_with(family));
    match kind.media_type.as_str() {
        _ if kind.active => ACTIVE,
        "application/pdf" => PDF,
        _ if media => MEDIA,
        _ => TEXT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_get_what_they_need_and_active_files_nothing() {
        let of = |name: &str| content_policy(&FileKind::of(name));
        for name in [
            "a.mp3", "a.m4a", "a.wav", "a.ogg", "a.mp4", "a.webm", "a.png", "a.jpg",
        ] {
            assert_eq!(of(name), MEDIA, "{name}");
        }
        for name in ["a.svg", "a.SVG", "a.html", "a.xhtml", "a.xml", "a.js"] {
            assert_eq!(of(name), ACTIVE, "{name}");
        }
        for name in ["a.txt", "a.md", "a.csv", "a.json", "noext"] {
            assert_eq!(of(name), TEXT, "{name}");
        }
        assert_eq!(of("a.pdf"), PDF);
    }

    #[test]
    fn no_policy_lets_a_script_run() {
        for policy in [ACTIVE, TEXT, MEDIA, PDF] {
            let directives: Vec<&str> = policy.split("; ").collect();
            assert!(
                directives.contains(&"default-src 'none'") && !policy.contains("script"),
                "{policy}"
            );
        }
    }
}
