//! Headings of a Markdown text. Pure.

/// Maximum number of headings in an outline.
const MAX_HEADINGS: usize = 50;
/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 200;

/// A heading with its line number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// Line number, beginning with 1.
    pub line: usize,
    /// Text of the heading.
    pub title: String,
}

/// Headings of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outline {
    /// The first headings, in order.
    pub headings: Vec<Heading>,
    /// `true` if there are more headings.
    pub truncated: bool,
}

/// Finds headings: lines that begin with `#`, and lines that are bold as a whole. Code blocks are
/// ignored.
pub fn outline(markdown: &str) -> Outline {
    let mut found = Outline::default();
    let mut fence: Option<&str> = None;
    for (at, line) in markdown.lines().enumerate() {
        let text = line.trim();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| text.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        let title = title_of(text).filter(|_| fence.is_none());
        let Some(title) = title else { continue };
        if found.headings.len() == MAX_HEADINGS {
            found.truncated = true;
            break;
        }
        found.headings.push(Heading {
            line: at + 1,
            title: title.chars().take(MAX_TITLE_CHARS).collect(),
        });
    }
    found
}

fn title_of(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    let title = match level {
        1..=6 if rest.starts_with(' ') => rest
            .trim()
            .trim_end_matches('#')
            .trim_end()
            .trim_matches('*'),
        0 => line
            .strip_prefix("**")?
            .strip_suffix("**")
            .filter(|title| !title.contains("**"))?
            .trim(),
        _ => return None,
    };
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outline_returns_headings_with_lines() {
        let text = "# One\n\ntext **bold** text\n**Two**\n```\n# no\n```\n###### Six ##\n####### no\n#no\n**a** and **b**\n## **Bold**\n****\n#\n";
        let found: Vec<(usize, String)> = outline(text)
            .headings
            .into_iter()
            .map(|heading| (heading.line, heading.title))
            .collect();
        let expected = [(1, "One"), (4, "Two"), (8, "Six"), (12, "Bold")]
            .map(|(line, title)| (line, title.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn outline_is_limited() {
        assert!(!outline(&"# a\n".repeat(MAX_HEADINGS)).truncated);
        let long = outline(&"# a\n".repeat(MAX_HEADINGS + 1));
        assert_eq!((long.headings.len(), long.truncated), (MAX_HEADINGS, true));
        assert_eq!(outline("plain\ntext"), Outline::default());
    }
}
