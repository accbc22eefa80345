//! What a file is by its name, and whether a browser may show it in place.

use axum::http::HeaderValue;

use crate::wire::percent_encoded;

/// How a file is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind {
    /// Its media type, with the character set for text.
    pub(super) media_type: String,
    /// Whether a browser could run something in it: such a file is only ever downloaded.
    pub(super) active: bool,
}

impl Kind {
    /// By the file's name.
    pub(super) fn of(name: &str) -> Self {
        let guessed = mime_guess::from_path(name).first_or_octet_stream();
        let essence = guessed.essence_str().to_ascii_lowercase();
        let active = essence.ends_with("+xml")
            || essence.ends_with("/xml")
            || essence.ends_with("javascript")
            || essence.ends_with("ecmascript")
            || essence.contains("xslt")
            || matches!(essence.as_str(), "text/html" | "application/xhtml+xml" | "image/svg+xml" | "application/x-shockwave-flash");
        let textual = essence.starts_with("text/") || essence == "application/json" || essence.ends_with("+json");
        let media_type = if textual { format!("{essence}; charset=utf-8") } else { essence };
        Self { media_type, active }
    }
}

/// `Content-Disposition` with the name twice: in ASCII for old readers, and as it is.
pub(super) fn disposition(attachment: bool, name: &str) -> HeaderValue {
    let way = if attachment { "attachment" } else { "inline" };
    let ascii: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || "._- ".contains(c) { c } else { '_' }).collect();
    let encoded = percent_encoded(name);
    HeaderValue::from_str(&format!("{way}; filename=\"{ascii}\"; filename*=UTF-8''{encoded}"))
        .unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_browser_could_run_is_active() {
        for name in ["a.html", "a.htm", "a.xhtml", "a.svg", "a.xml", "a.xsl", "a.xslt", "a.js", "a.mjs", "a.rss", "a.atom", "A.SVG"] {
            assert!(Kind::of(name).active, "{name}: {:?}", Kind::of(name));
        }
        for name in ["a.md", "a.txt", "a.png", "a.pdf", "a.csv", "a.json", "a.py", "noext", "a.mp4"] {
            assert!(!Kind::of(name).active, "{name}: {:?}", Kind::of(name));
        }
        assert_eq!(Kind::of("a.txt").media_type, "text/plain; charset=utf-8");
    }

    #[test]
    fn any_name_makes_a_header_that_says_only_that_name() {
        assert_eq!(disposition(false, "a b.md"), "inline; filename=\"a b.md\"; filename*=UTF-8''a%20b.md");
        assert_eq!(disposition(true, "ü\"\r\n;x"), "attachment; filename=\"_____x\"; filename*=UTF-8''%C3%BC%22%0D%0A%3Bx");
    }
}
