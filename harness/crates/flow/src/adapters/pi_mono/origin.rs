//! Origins of URLs. Pure.

use deerflow_core::net::Egress;
use reqwest::Url;

/// Host of DeepSeek's own API.
const DEEPSEEK_HOST: &str = "api.deepseek.com";

/// Scheme, host and port of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    /// Returns the origin of a base URL, or `None` if the text is none.
    pub fn of(url: &str) -> Option<Self> {
        parse_base(url).map(|url| Self(url.origin().ascii_serialization()))
    }
}

/// Parses a base URL: absolute, http or https, without credentials, query and fragment.
pub(super) fn parse_base(text: &str) -> Option<Url> {
    let form = Egress {
        allow_private: true,
        ..Egress::default()
    };
    form.read(text.trim())
        .ok()
        .filter(|url| url.query().is_none() && url.fragment().is_none())
}

/// Reports whether a URL belongs to DeepSeek's own API.
pub(super) fn is_deepseek(url: &str) -> bool {
    parse_base(url).is_some_and(|url| url.host_str() == Some(DEEPSEEK_HOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_ignore_case_path_and_default_port() {
        let same = Origin::of("https://h.test/a/");
        for url in ["HTTPS://H.test:443", " https://h.test/b "] {
            assert_eq!(Origin::of(url), same, "{url}");
        }
        for url in ["http://h.test", "https://h.test:444", "https://h.test.evil"] {
            assert_ne!(Origin::of(url), same, "{url}");
        }
        for url in [
            "",
            "h.test",
            "ftp://h.test",
            "https://u:p@h.test",
            "https://h.test?a=b",
        ] {
            assert_eq!(Origin::of(url), None, "{url}");
        }
    }

    #[test]
    fn only_its_exact_host_is_deepseek() {
        assert!(is_deepseek("https://API.deepseek.com/v1"));
        for url in [
            "https://api.deepseek.com.evil.test",
            "https://evil.test/api.deepseek.com",
            "https://api.deepseek.com@evil.test",
        ] {
            assert!(!is_deepseek(url), "{url}");
        }
    }
}
