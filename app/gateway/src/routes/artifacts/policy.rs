//! Content security policies of files.

use harness::artifacts::FileKind;

/// For active content, which is only downloaded.
const ACTIVE: &str = "sandbox; default-src 'none'";
/// For text: browsers display it with their own styles.
const TEXT: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'";
/// For media: browsers embed a player or an image in a page of their own, which fetches the file
/// again from its origin. No policy here allows scripts, so sharing the origin is harmless.
const MEDIA: &str = "sandbox allow-same-origin; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'";
/// For PDF: viewers are plugins, and a sandbox blocks plugins.
const PDF: &str =
    "default-src 'none'; object-src 'self'; img-src 'self'; style-src 'unsafe-inline'";

/// Returns the `Content-Security-Policy` of a file: the minimum that the browser's own viewer
/// needs.
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
    fn policy_permits_viewers_and_blocks_active_files() {
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
