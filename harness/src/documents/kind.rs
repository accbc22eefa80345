//! Which files are documents, by their names. Pure.

/// A kind of document that becomes Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DocumentKind {
    /// PDF.
    Pdf,
    /// Word before 2007.
    Doc,
    /// Word since 2007.
    Docx,
    /// PowerPoint before 2007.
    Ppt,
    /// PowerPoint since 2007.
    Pptx,
    /// Excel before 2007.
    Xls,
    /// Excel since 2007.
    Xlsx,
}

const KINDS: [(&str, DocumentKind); 7] = [
    ("pdf", DocumentKind::Pdf),
    ("doc", DocumentKind::Doc),
    ("docx", DocumentKind::Docx),
    ("ppt", DocumentKind::Ppt),
    ("pptx", DocumentKind::Pptx),
    ("xls", DocumentKind::Xls),
    ("xlsx", DocumentKind::Xlsx),
];

impl DocumentKind {
    /// The kind whose ending is `name`, without its dot.
    pub fn parse(name: &str) -> Option<Self> {
        KINDS
            .iter()
            .find(|(ending, _)| ending.eq_ignore_ascii_case(name))
            .map(|(_, kind)| *kind)
    }

    /// Its ending, without a dot.
    pub fn ending(self) -> &'static str {
        KINDS
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("", |(ending, _)| ending)
    }

    /// The kind of a file, and the names that its Markdown beside it may have: the first that nothing else has. The second is the
    /// document's alone, for those that differ in their endings.
    pub fn of_file(name: &str) -> Option<(Self, [String; 2])> {
        let (stem, ending) = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty())?;
        Some((
            Self::parse(ending)?,
            [format!("{stem}.md"), format!("{name}.md")],
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_known_by_their_endings() {
        assert_eq!(
            DocumentKind::of_file("a.b.PDF"),
            Some((
                DocumentKind::Pdf,
                ["a.b.md", "a.b.PDF.md"].map(str::to_owned)
            ))
        );
        for other in ["a.txt", "pdf", ".pdf", "a.", "a.pdf.txt", ""] {
            assert_eq!(DocumentKind::of_file(other), None, "{other}");
        }
        assert!(
            KINDS.iter().all(|(ending, kind)| kind.ending() == *ending
                && DocumentKind::parse(ending) == Some(*kind))
        );
    }
}
