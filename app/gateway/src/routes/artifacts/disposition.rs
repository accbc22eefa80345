//! File name of a download, and choice between display and download.

use axum::http::HeaderValue;
use harness::artifacts::percent_encoded;

/// Returns `Content-Disposition` with the name twice: in ASCII for old clients, and unchanged.
pub(super) fn disposition(attachment: bool, name: &str) -> HeaderValue {
    let kind = if attachment { "attachment" } else { "inline" };
    let ascii: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._- ".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    let encoded = percent_encoded(name);
    HeaderValue::from_str(&format!(
        "{kind}; filename=\"{ascii}\"; filename*=UTF-8''{encoded}"
    ))
    .unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_makes_a_safe_header() {
        assert_eq!(
            disposition(false, "a b.md"),
            "inline; filename=\"a b.md\"; filename*=UTF-8''a%20b.md"
        );
        assert_eq!(
            disposition(true, "ü\"\r\n;x"),
            "attachment; filename=\"_____x\"; filename*=UTF-8''%C3%BC%22%0D%0A%3Bx"
        );
    }
}
