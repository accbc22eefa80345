//! Media types of files, and whether a browser may display them inline.

/// Media type of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileKind {
    /// Media type, with the character set for text.
    pub media_type: String,
    /// `true` if a browser could execute content of the file: it is only offered as a download.
    pub active: bool,
}

impl FileKind {
    /// Determines the kind from the file name.
    pub fn of(name: &str) -> Self {
        let guessed = mime_guess::from_path(name).first_or_octet_stream();
        let essence = match guessed.essence_str().to_ascii_lowercase() {
            // Browsers only play the registered name of this type.
            guessed if guessed == "audio/m4a" => "audio/mp4".to_owned(),
            guessed => guessed,
        };
        let active = essence.ends_with("+xml")
            || essence.ends_with("/xml")
            || essence.ends_with("javascript")
            || essence.ends_with("ecmascript")
            || essence.contains("xslt")
            || matches!(
                essence.as_str(),
                "text/html"
                    | "application/xhtml+xml"
                    | "image/svg+xml"
                    | "application/x-shockwave-flash"
            );
        let textual = essence.starts_with("text/")
            || essence == "application/json"
            || essence.ends_with("+json");
        let media_type = if textual {
            format!("{essence}; charset=utf-8")
        } else {
            essence
        };
        Self { media_type, active }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_content_is_active() {
        for name in [
            "a.html", "a.htm", "a.xhtml", "a.svg", "a.xml", "a.xsl", "a.xslt", "a.js", "a.mjs",
            "a.rss", "a.atom", "A.SVG",
        ] {
            assert!(
                FileKind::of(name).active,
                "{name}: {:?}",
                FileKind::of(name)
            );
        }
        for name in [
            "a.md", "a.txt", "a.png", "a.pdf", "a.csv", "a.json", "a.py", "noext", "a.mp4",
        ] {
            assert!(
                !FileKind::of(name).active,
                "{name}: {:?}",
                FileKind::of(name)
            );
        }
        assert_eq!(
            FileKind::of("a.txt").media_type,
            "text/plain; charset=utf-8"
        );
        assert_eq!(FileKind::of("a.m4a").media_type, "audio/mp4");
    }
}
