//! The headings of a Markdown text. Pure.

/// The most headings that an outline has.
const MOST: usize = 50;
/// The longest title, in characters.
const LONGEST: usize = 200;

/// A heading and the line it stands on, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// The line.
    pub line: usize,
    /// What it says.
    pub title: String,
}

/// The headings of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outline {
    /// The first of them, in their order.
    pub headings: Vec<Heading>,
    /// Whether there are more.
    pub truncated: bool,
}

/// Finds headings: lines that begin with `#`, and lines that are bold as a whole. What stands in code is none.
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
        if found.headings.len() == MOST {
            found.truncated = true;
            break;
        }
        found.headings.push(Heading {
            line: at + 1,
            title: title.chars().take(LONGEST).collect(),
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
    fn headings_are_found_with_their_lines() {
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
    fn an_outline_has_an_end() {
        assert!(!outline(&"# a\n".repeat(MOST)).truncated);
        let long = outline(&"# a\n".repeat(MOST + 1));
        assert_eq!((long.headings.len(), long.truncated), (MOST, true));
        assert_eq!(outline("plain\ntext"), Outline::default());
    }
}
