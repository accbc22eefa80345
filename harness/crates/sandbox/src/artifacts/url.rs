//! URLs of artifacts in the gateway.

use std::fmt::Display;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::sandbox::VirtualPath;
use deerflow_core::ids::ThreadId;

/// Path as used in a URL, without its first slash.
pub(super) fn url_path(path: &VirtualPath) -> String {
    path.to_string().trim_start_matches('/').to_owned()
}

/// Returns the URL of an artifact in the gateway.
pub fn artifact_url(thread: &ThreadId, path: &VirtualPath) -> String {
    let segments: String = url_path(path)
        .split('/')
        .map(|name| format!("/{}", percent_encoded(name)))
        .collect();
    format!("/api/threads/{thread}/artifacts{segments}")
}

/// Characters that are not escaped in URLs (RFC 3986, 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'.')
    .remove(b'_')
    .remove(b'-')
    .remove(b'~');

/// Formats a name as one URL segment: all characters except unreserved ones are escaped.
pub fn percent_encoded(name: &str) -> impl Display {
    utf8_percent_encode(name, UNRESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifact_url_escapes_names() {
        let path = VirtualPath::parse("/mnt/user-data/outputs/ü/a b#.txt").unwrap();
        let url = artifact_url(&ThreadId::parse("t").unwrap(), &path);
        assert_eq!(
            url,
            "/api/threads/t/artifacts/mnt/user-data/outputs/%C3%BC/a%20b%23.txt"
        );
    }
}
